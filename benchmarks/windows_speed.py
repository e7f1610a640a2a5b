"""Lateness of windows: many that end within ten seconds, and those that a reactor finds when it starts again.

Measured is when the record of a decision is on the bus, which is after its action.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import nats
from nats.aio.msg import Msg

from benchmarks.measure import Result, cpu, spread
from benchmarks.rest_speed import rss_mb
from benchmarks.scaling_speed import Running, reactor
from benchmarks.world import until
from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock

WINDOWS, AT_RESTART = 100_000, 10_000
WITHIN = timedelta(seconds=10)
EACH_PUBLISHER = 5_000
"""Targets, so that none of them has too many."""
AT_ONCE = 5_000
SPARE_SECONDS = 30.0
"""Seconds between the last observation that was decided on and the first end of a window."""
A_SECOND = 1_000
"""Observations that a crowded machine takes: the toleration is so long that all windows are open before one ends."""
RULES = """
apiVersion: reactor/v1
rules:
- {{name: told, kind: Notification, mode: DryRun, match: "custom/**", tolerationSeconds: {seconds}}}
"""
LAG = re.compile(r'^reactor_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
TAKEN = re.compile(r'^reactor_facts_total\{kind="Observation"\} (\S+)$', re.MULTILINE)


async def windows() -> Result:
    """100,000 targets go bad, one after the other within ten seconds: from each window's end to its decision."""
    async with _bench(WINDOWS) as bench, bench.reactor() as running:
        rss = rss_mb(running.pid)
        await bench.open_all(running)
        kilobytes = (rss_mb(running.pid) - rss) * 1024 / WINDOWS
        spent = cpu(running.pid)
        await bench.all_told()
        spent = cpu(running.pid) - spent
        late = bench.late()
    figures = {
        "windows": WINDOWS, **spread(late), "early": sum(one < 0 for one in late), "kb_each": round(kilobytes, 2),
        "cpu_us_each": round(spent / WINDOWS * 1e6),
    }  # fmt: skip
    bars = {"p99_ms": "≤ 1000", "early": "0", "kb_each": "≤ 1.5"}
    return Result("windows", f"{WINDOWS} windows that end within {WITHIN.total_seconds():g} s", figures, bars)


async def restart() -> Result:
    """A reactor ends while 10,000 windows are open, and starts when they are over: until it acts on the last one."""
    async with _bench(AT_RESTART) as bench:
        async with bench.reactor() as running:
            await bench.open_all(running)
        await asyncio.sleep(max(0.0, (max(bench.ends.values()) - Clock().now()).total_seconds()))
        if bench.told:
            raise TimeoutError("this machine is too slow: a window was over before the reactor had ended")
        began = Clock().now().timestamp()
        async with bench.reactor() as running:
            ready = Clock().now().timestamp()
            await bench.all_told()
            held = await _held(running)
    acted = sorted(at for at, _ in bench.told)
    figures = {
        "windows": AT_RESTART, "ready_seconds": round(ready - began, 2),
        "first_seconds": round(acted[0] - ready, 2), "acting_seconds": round(acted[-1] - ready, 2),
        "loop_held_at_most_ms": held,
    }  # fmt: skip
    return Result(
        "restart", f"{AT_RESTART} windows that are over when a reactor starts", figures,
        {"acting_seconds": "≤ 3", "loop_held_at_most_ms": "≤ 100"},
    )  # fmt: skip


class _Bench:
    def __init__(self, folder: Path, server: EmbeddedServer, bus: JetStreamBus, count: int) -> None:
        self._folder, self._server, self._bus, self._count = folder, server, bus, count
        self.ends: dict[str, datetime] = {}
        """End of each target's window."""
        self.told: list[tuple[float, bytes]] = []
        """Decisions as they came, with the moment."""

    @asynccontextmanager
    async def reactor(self) -> AsyncIterator[Running]:
        async with reactor(self._folder, "one", self._server.url) as running:
            yield running

    async def open_all(self, running: Running) -> None:
        """Say of each target that it is bad; return once the reactor has decided on all."""
        first = Clock().now() - WITHIN
        for start in range(0, self._count, AT_ONCE):
            await self._bus.publish_all([self._bad(number, first) for number in range(start, start + AT_ONCE)])
        async with aiohttp.ClientSession() as session, asyncio.timeout(toleration(self._count)):
            while await _sample(session, running, TAKEN) < self._count:
                await asyncio.sleep(0.2)
        if Clock().now() >= min(self.ends.values()):
            raise TimeoutError("this machine is too slow: windows ended before all were open")

    def _bad(self, number: int, first: datetime) -> Outgoing:
        at, target = first + WITHIN * number / self._count, f"custom/t{number}"
        self.ends[target] = at + timedelta(seconds=toleration(self._count))
        who = f"bench{number // EACH_PUBLISHER}"
        said = Observation(target=target, status=Health.UNHEALTHY, signal=who, observed_at=at, stale_seconds=3600)
        body = encode(said, id=target, source="/bench", time=at)
        return Outgoing(subjects.observation(who, target), body, target)

    async def hear(self, message: Msg) -> None:
        """Take note of a decision."""
        self.told.append((Clock().now().timestamp(), message.data))

    async def all_told(self) -> None:
        """Wait until there is a decision for each target."""
        wait = (max(self.ends.values()) - Clock().now()).total_seconds() + 300
        await until(lambda: len(self.told) >= self._count, wait)

    def late(self) -> list[float]:
        """Seconds from each window's end to its decision."""
        return [at - self.ends[json.loads(body)["data"]["object"]].timestamp() for at, body in self.told]


def toleration(count: int) -> float:
    """Seconds that a window of so many lasts."""
    return WITHIN.total_seconds() + count / A_SECOND + SPARE_SECONDS


@asynccontextmanager
async def _bench(count: int) -> AsyncIterator[_Bench]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with AsyncExitStack() as stack:
            emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
            emulator.cluster("east")
            write_kubeconfig(folder / "kubeconfig", emulator)
            (folder / "rules.yaml").write_text(RULES.format(seconds=toleration(count)), "utf-8")
            server = await stack.enter_async_context(EmbeddedServer(folder / "nats"))
            bus = await stack.enter_async_context(JetStreamBus.connect(server.url, name="bench"))
            bench = _Bench(folder, server, bus, count)
            plain = await nats.connect(server.url, pending_size=1 << 30)
            stack.push_async_callback(plain.close)
            await plain.subscribe(f"{subjects.ROOT}.decisions.>", cb=bench.hear, pending_msgs_limit=-1)
            yield bench


async def _sample(session: aiohttp.ClientSession, running: Running, wanted: re.Pattern[str]) -> float:
    async with session.get(f"{running.url}/metrics") as answer:
        return sum(float(found) for found in wanted.findall(await answer.text()))


async def _held(running: Running) -> float:
    """The least bound of `reactor_loop_lag_seconds` that was never exceeded, in milliseconds."""
    async with aiohttp.ClientSession() as session, session.get(f"{running.url}/metrics") as answer:
        counts: Mapping[float, float] = {float(le): float(n) for le, n in LAG.findall(await answer.text())}
    return 1000 * min(bound for bound, n in counts.items() if n == max(counts.values()))
