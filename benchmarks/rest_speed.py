"""Resources of a reactor while nothing happens: its start, its memory, and a minute of 1,000 routes without change."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.measure import Result, cpu
from benchmarks.scaling_speed import reactor
from benchmarks.world import world
from bus.embedded import EmbeddedServer
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock

ROUTES = 1_000
RULES = 1_000
SETTLE_SECONDS = 35
"""Longer than a source takes until it has said all that is current once more."""
MEASURED_SECONDS = 60
RULE = """
- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  backends: [{{service: app{n}, target: custom/app{n}}}, {{service: app{n}-west, target: custom/app{n}-west}}]
"""


async def idle() -> Result:
    """1,000 routes of three backends each, watched, and nothing changes for a minute."""
    async with world(ROUTES) as w:
        await w.known(ROUTES, 3)
        await asyncio.sleep(SETTLE_SECONDS)
        (server,) = _children(w.pid)
        before = cpu(w.pid), cpu(server), _written(server), _switches(w.pid)
        await asyncio.sleep(MEASURED_SECONDS)
        after = cpu(w.pid), cpu(server), _written(server), _switches(w.pid)
        ours, theirs, written, switches = (new - old for new, old in zip(after, before, strict=True))
        figures = {
            "routes": ROUTES, "cpu_seconds_a_minute": round(ours, 2), "server_cpu_seconds_a_minute": round(theirs, 2),
            "mb_written_a_minute": round(written / 1e6, 2), "switches_a_second": round(switches / MEASURED_SECONDS),
            "rss_mb": rss_mb(w.pid),
        }  # fmt: skip
    bars = {"cpu_seconds_a_minute": "≤ 0.3", "server_cpu_seconds_a_minute": "≤ 0.2", "mb_written_a_minute": "≤ 2"}
    return Result("idle", f"a minute of {ROUTES} routes that do not change", figures, bars)


async def start() -> Result:
    """Start with one rule and with 1,000: seconds of CPU until it takes posts, and memory then.

    Each twice, and the second one counts: the first one compiles Python's bytecode.
    """
    figures: dict[str, float] = {}
    for rules in (1, RULES):
        for _ in range(2):
            seconds, rss = await _started(rules)
        figures |= {f"cpu_seconds_{rules}": round(seconds, 2), f"rss_mb_{rules}": rss}
    bars = {"cpu_seconds_1": "≤ 1", "rss_mb_1": "≤ 70", f"rss_mb_{RULES}": "≤ 100"}
    return Result("start", "cold start to ready", figures, bars)


async def _started(rules: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            folder = Path(name)
            emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
            emulator.cluster("east")
            write_kubeconfig(folder / "kubeconfig", emulator)
            text = "apiVersion: reactor/v1\nrules:" + "".join(RULE.format(n=n) for n in range(rules))
            (folder / "rules.yaml").write_text(text, "utf-8")
            server = await stack.enter_async_context(EmbeddedServer(folder / "nats"))
            running = await stack.enter_async_context(reactor(folder, "one", server.url))
            seconds = cpu(running.pid)
            await asyncio.sleep(3)
            return seconds, rss_mb(running.pid)


def rss_mb(pid: int) -> float:
    """Memory that a process has now."""
    return round(_field(Path(f"/proc/{pid}/status"), "VmRSS") / 1024, 1)


def _written(pid: int) -> float:
    """Bytes that a process has sent to its disk."""
    return _field(Path(f"/proc/{pid}/io"), "write_bytes")


def _switches(pid: int) -> float:
    return _field(Path(f"/proc/{pid}/status"), "voluntary_ctxt_switches")


def _field(file: Path, name: str) -> float:
    (line,) = (one for one in file.read_text("utf-8").splitlines() if one.startswith(f"{name}:"))
    return float(line.split()[1])


def _children(pid: int) -> list[int]:
    texts = [file.read_text("utf-8") for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in texts for child in text.split()]
