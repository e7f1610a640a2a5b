"""Findings of `reactor bus check` and `reactor bus status`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bus import topology
from bus.errors import KeyNotFound, Unavailable
from bus.jetstream import JetStreamBus
from bus.jetstream.permission_trial import missing
from bus.jetstream.provisioning import plan
from reactor.cli.shared.printing import warn
from reactor.fleet.layout import partitions_of
from reactor.process.session import CLOCKS_APART, clock_difference
from reactor.runtime.clock import Clock
from reactor.settings.bus_settings import BusSettings
from reactor.views.membership import owners

Row = dict[str, Any]
SYNC = "cannot be checked: set sync_interval: always on each server, or a power failure loses acknowledged messages"
INIT = "run reactor bus init"


@dataclass(frozen=True, slots=True)
class BusFinding:
    """One thing that was looked at."""

    name: str
    result: Literal["ok", "hint", "failed"]
    detail: str = ""


async def check_all(bus: JetStreamBus, settings: BusSettings) -> Sequence[BusFinding]:
    """Everything that a reactor needs. Raises Unavailable. That the server is new enough and has JetStream is known by
    now: without, there is no connection."""
    version = bus.connection.client.connected_server_version
    server = f"nats-server {version.major}.{version.minor}.{version.patch} with JetStream"
    denied = [BusFinding("permissions", "failed", text) for text in await missing(bus)]
    return [
        BusFinding("server", "ok", server),
        *(denied or [BusFinding("permissions", "ok")]),
        *await _streams(bus, settings),
        *await _partitions(bus, settings),
        *await _probe(bus),
        BusFinding("sync_interval", "hint", SYNC),
    ]


async def _partitions(bus: JetStreamBus, settings: BusSettings) -> list[BusFinding]:
    there = await partitions_of(bus)
    if there is None:
        return [BusFinding("partitions", "failed", f"the number of partitions is not set: {INIT}")]
    if there != settings.partitions:
        detail = f"{settings.partitions} in the settings, {there} on the bus: use {there}"
        return [BusFinding("partitions", "failed", detail)]
    return [BusFinding("partitions", "ok", str(there))]


async def _streams(bus: JetStreamBus, settings: BusSettings) -> list[BusFinding]:
    steps = await plan(bus, replicas=settings.replicas)
    wrong = [BusFinding("streams", "failed", str(step)) for step in steps if step.wrong]
    open_ = [BusFinding("streams", "failed", f"{step}: {INIT}") for step in steps if not step.wrong and step.request]
    return [*wrong, *open_] or [BusFinding("streams", "ok", f"{len(steps)} streams, buckets and queues")]


async def _probe(bus: JetStreamBus) -> list[BusFinding]:
    clock = Clock()
    try:
        ahead, doubt = await clock_difference(bus, clock)
    except Unavailable as error:
        return [BusFinding("write", "failed", str(error))]
    took = f"written and read in {doubt.total_seconds() * 2000:.0f} ms"
    apart = abs(ahead) - doubt > CLOCKS_APART
    detail = f"the bus's is {ahead.total_seconds():+.1f} s ahead of this machine's"
    if apart:
        detail += ": synchronize both by NTP; the reactor uses the clock of the bus"
    return [BusFinding("write", "ok", took), BusFinding("clock", "hint" if apart else "ok", detail)]


async def look(bus: JetStreamBus) -> dict[str, list[Row]]:
    """The current streams, queues and partitions. Raises Unavailable, and KeyNotFound before `reactor bus init`."""
    if any(step.new for step in await plan(bus)):
        raise KeyNotFound(f"this bus has no streams of a reactor: {INIT}, or start a reactor")
    names = [*(one.name for one in topology.STREAMS), *(f"KV_{one.name}" for one in topology.BUCKETS)]
    streams = await asyncio.gather(*(_stream(bus, name) for name in names))
    queues = await asyncio.gather(*(_queue(bus, one) for one in topology.QUEUES))
    _, partitions = await owners(bus, warn)
    return {"streams": list(streams), "queues": list(queues), "partitions": partitions}


async def _stream(bus: JetStreamBus, name: str) -> Row:
    info = await bus.connection.api(f"STREAM.INFO.{name}", {})
    config, state = info["config"], info["state"]
    most = config.get("max_bytes", -1)
    return {
        "name": name, "messages": state["messages"], "bytes": state["bytes"],
        "full_percent": round(100 * state["bytes"] / most, 1) if most > 0 else None,
        "replicas": config["num_replicas"], "leader": (info.get("cluster") or {}).get("leader"),
        "behind": [one["name"] for one in (info.get("cluster") or {}).get("replicas", ()) if not one["current"]],
    }  # fmt: skip


async def _queue(bus: JetStreamBus, queue: topology.Queue) -> Row:
    info = await bus.connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {})
    return {
        "name": queue.name, "stream": queue.stream, "waiting": info["num_pending"], "in_hands": info["num_ack_pending"],
        "given_again": info["num_redelivered"], "listening": info["num_waiting"] > 0,
    }  # fmt: skip
