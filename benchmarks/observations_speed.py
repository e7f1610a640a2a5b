"""Observations that match a rule and move nothing: how many a second one process takes, and what each costs.

Beside it, in the same run, the same hops bare: pull and acknowledge, publish again, read in order, publish again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig

from benchmarks.beside_rulebook import in_ansible_rulebook
from benchmarks.measure import Result, cpu
from benchmarks.scaling_speed import TAKEN, reactor
from benchmarks.world import DefaultSync
from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock

ROUTES = 1_000
BACKENDS = 10
NAMES = [f"app{n}-{k}" for k in range(BACKENDS) for n in range(ROUTES)]
ROUNDS = 2
BATCH = 500
AT_ONCE = 8
"""Batches on their way."""
LOOK_SECONDS = 1.0
"""Seconds between two reads of one metric: all of 1,000 rules cost the process what 500 observations do."""
RULE = """
- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  tolerationSeconds: 3600
  recoverySeconds: 3600
  backends:
"""


async def observations() -> Result:
    """10,000 targets, each of which changes its status in each round, within its toleration."""
    figures: dict[str, Any] = {"observations": ROUTES * BACKENDS * ROUNDS}
    for sync, server in (("always", EmbeddedServer), ("default", DefaultSync)):
        figures[f"sync_{sync}"] = one = await _beside_bare_hops(server)
        print(f"  sync {sync}: {one}", file=sys.stderr, flush=True)
    figures["ansible_rulebook"] = peer = in_ansible_rulebook(ROUTES * BACKENDS, ROUNDS)
    if isinstance(theirs := peer.get("per_second"), float):
        figures["ratio_to_ansible_rulebook"] = round(figures["sync_always"]["per_second"] / theirs, 3)
    bars = {"ratio_to_bare": "≥ 0.55", "cpu_us": "≤ 60", "ratio_to_ansible_rulebook": "≥ 1"}
    return Result("observations", "observations that match a rule and move nothing", figures, bars)


async def _beside_bare_hops(kind: type[EmbeddedServer]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            folder = Path(name)
            emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
            emulator.cluster("east")
            write_kubeconfig(folder / "kubeconfig", emulator)
            (folder / "rules.yaml").write_text(_rules(), "utf-8")
            server = await stack.enter_async_context(kind(folder / "nats"))
            bare = await bare_hops(server, ROUTES * BACKENDS)
            running = await stack.enter_async_context(reactor(folder, "one", server.url))
            bus = await stack.enter_async_context(JetStreamBus.connect(server.url, name="bench"))
            session = await stack.enter_async_context(aiohttp.ClientSession())
            await say(bus, NAMES, Health.HEALTHY, 0)
            await _until_taken(session, running.url, ROUTES * BACKENDS)
            figures = await _measured(bus, session, running.url, (running.pid, server.pid))
    return figures | {"bare_per_second": bare, "ratio_to_bare": round(figures["per_second"] / bare, 3)}


async def _measured(
    bus: JetStreamBus, session: aiohttp.ClientSession, url: str, pids: tuple[int, int]
) -> dict[str, float]:
    count = ROUTES * BACKENDS * ROUNDS
    taken, before = await _taken(session, url), [cpu(pid) for pid in pids]
    began = time.perf_counter()
    for number in range(1, ROUNDS + 1):
        await say(bus, NAMES, Health.UNHEALTHY if number % 2 else Health.HEALTHY, number)
    await _until_taken(session, url, taken + count)
    seconds = time.perf_counter() - began
    ours, servers = (round((cpu(pid) - was) / count * 1e6, 1) for pid, was in zip(pids, before, strict=True))
    return {"per_second": round(count / seconds, 1), "cpu_us": ours, "server_cpu_us": servers}


def _rules() -> str:
    rules = (
        RULE.format(n=n) + "".join(f"  - {{service: app{n}-{k}, target: custom/app{n}-{k}}}\n" for k in range(BACKENDS))
        for n in range(ROUTES)
    )
    return "apiVersion: reactor/v1\nrules:" + "".join(rules)


async def say(bus: JetStreamBus, names: Sequence[str], status: Health, round_: int) -> None:
    """Publish, as a source outside of the reactor does, that these targets have this status.

    Several batches at a time: one alone waits for the server longer than a reactor takes for it.
    """
    at, messages = Clock().now(), []
    for name in names:
        target, id_ = f"custom/{name}", f"bench/{round_}/{name}"
        said = Observation(target=target, status=status, signal="bench", observed_at=at, stale_seconds=3600)
        body = encode(said, id=id_, source="/bench", time=at)
        messages.append(Outgoing(subjects.observation("bench", target), body, id_))
    for start in range(0, len(messages), BATCH * AT_ONCE):
        batches = [messages[begin : begin + BATCH] for begin in range(start, start + BATCH * AT_ONCE, BATCH)]
        await asyncio.gather(*(bus.publish_all(batch) for batch in batches))


async def _taken(session: aiohttp.ClientSession, url: str) -> float:
    text = await (await session.get(f"{url}/metrics", params={"name[]": "reactor_facts_total"})).text()
    return sum(float(found) for found in TAKEN.findall(text))


async def _until_taken(session: aiohttp.ClientSession, url: str, count: float) -> None:
    async with asyncio.timeout(600):
        while await _taken(session, url) < count:
            await asyncio.sleep(LOOK_SECONDS)


async def bare_hops(server: EmbeddedServer, count: int) -> float:
    """Send so many messages over the same three hops with nats-py alone, and give how many a second went."""
    body = json.dumps({"pad": "x" * 400}).encode()
    client = await nats.connect(server.url)
    context = client.jetstream(publish_async_max_pending=1_000)
    for name in ("one", "two", "three"):
        await context.add_stream(StreamConfig(name=f"bare-{name}", subjects=[f"bare.{name}.>"]))
    durable = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, deliver_policy=DeliverPolicy.ALL)
    pull = await context.pull_subscribe("bare.one.>", durable="bare", stream="bare-one", config=durable)
    read = await context.subscribe("bare.two.>", ordered_consumer=True, stream="bare-two")

    async def routed() -> None:
        left = count
        while left:
            messages = await pull.fetch(200)
            waits = [await context.publish_async(f"bare.two.{number}", one.data) for number, one in enumerate(messages)]
            await asyncio.gather(*waits)
            for one in messages:
                await one.ack()
            left -= len(messages)

    async def decided() -> None:
        waits = [await context.publish_async("bare.three.x", (await read.next_msg(30)).data) for _ in range(count)]
        await asyncio.gather(*waits)

    began = time.perf_counter()
    tasks = [asyncio.create_task(one()) for one in (routed, decided)]
    for number in range(count):
        await context.publish_async(f"bare.one.{number}", body)
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - began
    for name in ("one", "two", "three"):
        await context.delete_stream(f"bare-{name}")
    await client.close()
    return round(count / seconds, 1)
