"""Makes the streams, queues and buckets of `bus.topology` on a server, and checks those that are there already.

It may be run at every start, and again and again while processes run: one request for each stream, bucket and queue,
and no more where all is there. It never makes anything smaller and never deletes: sizes and ages of what exists are the
operator's, but for buckets that are to forget and have no age yet. What exists and cannot be used (other subjects,
another retention) is refused with its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from bus import topology
from bus.errors import NotReady, WrongServer
from bus.jetstream.connection import INSTEAD, ApiError, Connection
from bus.jetstream.jetstream_bus import JetStreamBus
from bus.topology import DUPLICATE_WINDOW, Bucket, Queue, Stream

NO_STREAM = 10059
NO_CONSUMER = 10014
NO_PEERS = 10005  # no suitable peers for placement: there are too few servers, or they have not joined yet
NOT_SO_MANY = (NO_PEERS, 10074)  # replicas > 1 on a server without a cluster
FIXED = ("subjects", "retention", "storage", "max_msgs_per_subject")
"""Keys of a stream that decide how messages are kept. With other values the product would lose some."""
KEPT_UP = ("discard", "allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "allow_atomic", "deny_delete", "deny_purge")
"""Keys that are updated in a stream that is there already."""


@dataclass(frozen=True, slots=True)
class ProvisioningStep:
    """Change of one stream, bucket or queue."""

    name: str
    """`REACTOR_FACTS`, `KV_reactor_groups`, `REACTOR_INBOX > routers`."""
    new: bool = False
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Key to what is there and what is needed."""
    wrong: str = ""
    """Reason why the one that is there cannot be used; empty: it can."""
    request: tuple[str, Mapping[str, Any]] | None = None
    """Request to the server; None: none is needed."""

    def __str__(self) -> str:
        if self.wrong:
            return f"{self.name} {self.wrong}"
        if self.new:
            return f"{self.name}: is missing"
        told = ", ".join(f"{key} {there} -> {needed}" for key, (there, needed) in self.changes.items())
        return f"{self.name}: {told or 'as expected'}"


async def provision(bus: JetStreamBus, *, replicas: int = 1, only_missing: bool = False) -> Sequence[ProvisioningStep]:
    """Make what is missing, and give what was done. Raises Unavailable, and WrongServer where something is there that
    cannot be used: then nothing was changed.

    `only_missing`: leave what is there as it is. For processes that run: two versions of them side by side would
    otherwise set it to and fro.
    """
    steps = await plan(bus, replicas=replicas)
    if wrong := [str(step) for step in steps if step.wrong]:
        raise WrongServer("; ".join(wrong))
    done = [step for step in steps if step.request is not None and (step.new or not only_missing)]
    for step in done:
        if step.request is not None:
            await _ask(bus.connection, *step.request)
    return done


async def _ask(connection: Connection, api: str, request: Mapping[str, Any]) -> None:
    try:
        await connection.api(api, request)
    except ApiError as error:
        if error.code in NOT_SO_MANY:
            kind = NotReady if error.code == NO_PEERS else WrongServer
            raise kind(f"copies need a cluster of as many servers with room on each: {error}") from error
        raise


async def plan(bus: JetStreamBus, *, replicas: int = 1) -> Sequence[ProvisioningStep]:
    """Steps that `provision` would take, in its order. Raises Unavailable."""
    connection = bus.connection
    streams = [await _stream(connection, _stream_config(stream, replicas)) for stream in topology.STREAMS]
    buckets = [await _stream(connection, _bucket_config(bucket, replicas)) for bucket in topology.BUCKETS]
    return [*streams, *buckets, *[await _queue(connection, queue) for queue in topology.QUEUES]]


async def paused(bus: JetStreamBus, queues: Sequence[Queue]) -> Mapping[Queue, str]:
    """Give those of our queues that a person has paused, and what to say of each. Raises Unavailable."""
    found = {}
    for queue in queues:
        try:
            info = await bus.connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {})
        except ApiError as error:
            if error.code in (NO_CONSUMER, NO_STREAM):
                continue  # the search for missing parts reports it
            raise
        if info.get("paused"):
            until = info["config"].get("pause_until")
            found[queue] = (
                f"{queue.stream} > {queue.name}: this consumer was paused from outside until {until}, so that nothing "
                f"is taken from it; it is resumed ({INSTEAD})"
            )
    return found


async def resume(bus: JetStreamBus, queue: Queue) -> None:
    """Let it go on. Raises Unavailable where we may not."""
    await bus.connection.api(f"CONSUMER.PAUSE.{queue.stream}.{queue.name}", {})


async def copies(bus: JetStreamBus) -> Mapping[str, int]:
    """Give how many replicas each of our streams has that is there. Raises Unavailable."""
    found = {}
    for name in [*(one.name for one in topology.STREAMS), *(f"KV_{one.name}" for one in topology.BUCKETS)]:
        try:
            found[name] = int((await bus.connection.api(f"STREAM.INFO.{name}", {}))["config"]["num_replicas"])
        except ApiError as error:
            if error.code != NO_STREAM:
                raise
    return found


async def _stream(connection: Connection, wanted: dict[str, Any]) -> ProvisioningStep:
    name = wanted["name"]
    try:
        there = (await connection.api(f"STREAM.INFO.{name}", {}))["config"]
    except ApiError as error:
        if error.code != NO_STREAM:
            raise
        return ProvisioningStep(name, new=True, request=(f"STREAM.CREATE.{name}", wanted))
    # An older version's stream has fewer subjects: those that are missing are added.
    grown = set(there.get("subjects") or ()) < set(wanted["subjects"])
    if wrong := _other(there, wanted, tuple(key for key in FIXED if key != "subjects" or not grown)):
        return ProvisioningStep(name, wrong=wrong)
    needed = {key: wanted[key] for key in KEPT_UP}
    if grown:
        needed["subjects"] = wanted["subjects"]
    needed["num_replicas"] = max(there["num_replicas"], wanted["num_replicas"])
    if not there.get("max_age") and wanted["max_msgs_per_subject"] == 1:
        needed["max_age"] = wanted["max_age"]
    needed["duplicate_window"] = max(there.get("duplicate_window", 0), wanted["duplicate_window"])
    return _update(name, there, needed, f"STREAM.UPDATE.{name}", {**there, **needed})


async def _queue(connection: Connection, queue: Queue) -> ProvisioningStep:
    name = f"{queue.stream} > {queue.name}"
    wanted = {
        "durable_name": queue.name, "filter_subject": queue.filter, "ack_policy": "explicit", "deliver_policy": "all",
        "replay_policy": "instant", "ack_wait": _ns(queue.ack_wait), "max_deliver": queue.max_deliver,
        "max_ack_pending": queue.max_ack_pending,
    }  # fmt: skip
    create = f"CONSUMER.DURABLE.CREATE.{queue.stream}.{queue.name}"
    try:
        there = (await connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {}))["config"]
    except ApiError as error:
        if error.code not in (NO_CONSUMER, NO_STREAM):
            raise
        return ProvisioningStep(name, new=True, request=(create, {"stream_name": queue.stream, "config": wanted}))
    if wrong := _other(there, wanted, ("filter_subject", "ack_policy")):
        return ProvisioningStep(name, wrong=wrong)
    return _update(name, there, wanted, create, {"stream_name": queue.stream, "config": {**there, **wanted}})


def _update(
    name: str, there: dict[str, Any], needed: dict[str, Any], api: str, body: dict[str, Any]
) -> ProvisioningStep:
    changes = {key: (there.get(key), value) for key, value in needed.items() if there.get(key, False) != value}
    return ProvisioningStep(name, changes=changes, request=(api, body)) if changes else ProvisioningStep(name)


def _other(there: dict[str, Any], wanted: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Reason why it cannot be used; empty: it can."""
    for key in keys:
        if _plain(there.get(key)) != _plain(wanted[key]):
            return (
                f"exists with {key} {there.get(key)}, but {wanted[key]} is needed: "
                "nothing was changed; move its data away, delete it, and start again"
            )
    return ""


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value


def _stream_config(stream: Stream, replicas: int) -> dict[str, Any]:
    return _config(
        stream.name, list(stream.subjects), stream.why, replicas, max_bytes=stream.max_bytes,
        retention=stream.retention, max_age=_ns(stream.max_age),
        # A full work queue refuses, so that what is owed is not lost; a full log forgets its oldest.
        discard="new" if stream.retention == "workqueue" and not stream.drops_oldest else "old",
        # An owner's new marker takes the place of the one before.
        allow_rollup_hdrs=stream is topology.ACTIONS,
        # No user takes a record out of the audit, and no later configuration allows it again.
        deny_delete=stream is topology.DECISIONS, deny_purge=stream is topology.DECISIONS,
    )  # fmt: skip


def _bucket_config(bucket: Bucket, replicas: int) -> dict[str, Any]:
    return _config(
        f"KV_{bucket.name}", [f"$KV.{bucket.name}.>"], bucket.why, replicas, max_bytes=bucket.max_bytes,
        max_age=_ns(bucket.max_age), max_msgs_per_subject=1, discard="new", allow_rollup_hdrs=True, deny_delete=True,
        # The marks of removed keys go away by themselves.
        allow_msg_ttl=True,
    )  # fmt: skip


def _config(name: str, subjects: list[str], why: str, replicas: int, **more: Any) -> dict[str, Any]:
    """Configuration of a stream. `more`: the keys in which streams differ."""
    return {
        "name": name, "subjects": subjects, "description": f"alert-reactor: {why}", "storage": "file",
        "retention": "limits", "num_replicas": replicas, "max_age": 0, "max_msgs": -1, "max_consumers": -1,
        "max_msg_size": -1, "max_msgs_per_subject": -1, "allow_direct": True, "allow_msg_ttl": False,
        "allow_atomic": True,
        "deny_delete": False, "deny_purge": False,
        "duplicate_window": _ns(DUPLICATE_WINDOW),
        **more,
    }  # fmt: skip


def _ns(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000
