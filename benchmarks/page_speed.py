"""Cost of the page: 500 open windows with ten changes a second, to a browser's paint and to 100 viewers."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp

from benchmarks import rest_speed
from benchmarks.measure import Result, cpu, spread
from benchmarks.rest_speed import rss_mb
from benchmarks.world import until
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.jetstream.provisioning import provision
from bus.messages import Backend, Fact, Health, Observation, Route
from bus.topology import GROUPS
from reactor.runtime.clock import Clock
from rules.core.group import Group
from rules.core.member import Member
from rules.core.values import replace
from rules.engine.group_codec import dump_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.browser import browsing

WINDOWS = 500
CHANGED = 50
"""Number of them that change in turn: those that are shown first."""
A_SECOND = 10
SECONDS = 20
VIEWERS = 100
LINE_MAX = 2**24
"""The first event is one line with everything."""
RULE = rest_speed.RULE + "  tolerationSeconds: 3600\n"
RULES = "apiVersion: reactor/v1\nrules:" + "".join(RULE.format(n=n) for n in range(WINDOWS))
SETTINGS = """
name: bench
ruleFiles: ["{folder}/rules.yaml"]
clusters: {{east: {{kubeconfig: "{folder}/none"}}}}
bus: {{url: "{bus}"}}
receiver: {{listen: "127.0.0.1:0"}}
health: {{listen: "127.0.0.1:0"}}
web: {{listen: "127.0.0.1:0"}}
"""
PAGE = re.compile(r"page on (http://\S+)")
PAINTED = """(window.painted = [], window.seen = new Set(), new MutationObserver(() => {
  const sent = [];
  for (const [, at] of document.querySelector('#counting').textContent.matchAll(/sent (\\d+) /g))
    if (!seen.has(at)) { seen.add(at); sent.push(Number(at)); }
  if (sent.length) requestAnimationFrame(() => setTimeout(() => {
    for (const at of sent) painted.push(Date.now() - at);
  }));
}).observe(document.body, {subtree: true, childList: true, characterData: true}), true)"""


async def page() -> Result:
    """Send to paint, the CPU of viewers, what a slow one does to the others, and memory."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "rules.yaml").write_text(RULES, "utf-8")
        server = await stack.enter_async_context(EmbeddedServer(folder / "nats"))
        bus = await stack.enter_async_context(JetStreamBus.connect(server.url, name="bench"))
        await provision(bus)
        groups = _open(Clock())
        for number, group in enumerate(groups):
            await bus.store(GROUPS).put(f"99.group.app{number}", dump_group(group), revision=None)
        async with _process(folder, server.url, "decider,router,receiver") as (pid, _):
            await asyncio.sleep(5)
            without = rss_mb(pid)
        async with _process(folder, server.url, "decider,router,receiver,web") as (pid, url):
            await asyncio.sleep(5)
            figures: dict[str, object] = {"rss_more_mb": round(rss_mb(pid) - without, 1)}
            paint = await _painted(url, bus, groups)
            figures |= {f"paint_{name}": value for name, value in paint.items()}
            async with _slow_viewer(url):
                beside = await _painted(url, bus, groups)
            figures["paint_beside_slow_viewer_ratio"] = round(beside["p50_ms"] / paint["p50_ms"], 2)
            figures |= await _watched(pid, url, bus, groups)
            figures["rss_more_mb_100_viewers"] = round(rss_mb(pid) - without, 1)
    bars = {"paint_p50_ms": "≤ 50", "cpu_of_a_core_100_viewers": "≤ 0.25", "rss_more_mb": "≤ 20",
            "paint_beside_slow_viewer_ratio": "≤ 1.3", "missed_beside_slow_viewer": "0"}  # fmt: skip
    return Result("page", f"{WINDOWS} open windows, {A_SECOND} changes a second", figures, bars)


def _open(clock: Clock) -> Sequence[Group]:
    """Groups as a decider would store them: each with a window that has just opened."""
    now = clock.now()
    store = GroupStore(Routing.of(load_rules([("rules.yaml", RULES)])))
    for n in range(WINDOWS):
        backends = (Backend(service=f"app{n}", weight=1), Backend(service=f"app{n}-west", weight=0))
        told: list[Fact] = [
            Route(cluster="east", kind="TrafficSplit", namespace="shop", name=f"app{n}", backends=backends,
                  observed_at=now),
            *(Observation(target=f"custom/app{n}{more}", status=Health.HEALTHY, observed_at=now)
              for more in ("", "-west")),
        ]  # fmt: skip
        store.apply(told, now)
        later = now + timedelta(milliseconds=n)
        store.apply([Observation(target=f"custom/app{n}", status=Health.UNHEALTHY, observed_at=later)], later)
    return [group for group in store.groups.values() if any(one.window for one in group.members.values())]


@asynccontextmanager
async def _process(folder: Path, bus: str, roles: str) -> AsyncIterator[tuple[int, str]]:
    """A process with these roles; gives its ID and the URL of its page."""
    config, log = folder / "reactor.yaml", folder / "log"
    config.write_text(SETTINGS.format(folder=folder, bus=bus), "utf-8")
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reactor.cli.main", "run", "--config", str(config), "--roles", roles, stderr=file
        )
    try:
        await until(lambda: "webhooks on" in log.read_text("utf-8") or process.returncode is not None)
        if process.returncode is not None:
            raise RuntimeError(log.read_text("utf-8"))
        found = PAGE.search(log.read_text("utf-8"))
        yield process.pid, found[1] if found else ""
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _change(bus: JetStreamBus, groups: Sequence[Group], clock: Clock) -> int:
    """Change ten windows a second for a while; gives how many."""
    count = SECONDS * A_SECOND
    for number in range(count):
        at = number % CHANGED
        group, began = groups[at], clock.monotonic()
        detail = f"sent {clock.now().timestamp() * 1000:.0f} "
        members = {name: _said(one, detail) for name, one in group.members.items()}
        await bus.store(GROUPS).put(f"99.group.app{at}", dump_group(replace(group, members=members)), revision=None)
        await asyncio.sleep(max(1 / A_SECOND - (clock.monotonic() - began), 0))
    return count


def _said(member: Member, detail: str) -> Member:
    return replace(member, signals={name: replace(one, detail=detail) for name, one in member.signals.items()})


async def _painted(url: str, bus: JetStreamBus, groups: Sequence[Group]) -> dict[str, float]:
    async with browsing() as browser:
        await browser.go(f"{url}/")
        async with asyncio.timeout(30):
            while not await browser.ask("document.querySelectorAll('#counting .card').length >= 50"):
                await asyncio.sleep(0.1)
        await browser.ask(PAINTED)
        sent = await _change(bus, groups, Clock())
        await asyncio.sleep(1)
        milliseconds = await browser.ask("window.painted")
    return {**spread([one / 1000 for one in milliseconds]), "seen": len(milliseconds), "sent": sent}


async def _watched(pid: int, url: str, bus: JetStreamBus, groups: Sequence[Group]) -> dict[str, object]:
    """100 viewers, and one more that reads nothing."""
    clock = Clock()
    counts = [0] * VIEWERS
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=LINE_MAX)
        )
        tasks = [asyncio.create_task(_view(http, url, counts, number)) for number in range(VIEWERS)]
        await stack.enter_async_context(_slow_viewer(url))
        await asyncio.sleep(5)
        before, began = cpu(pid), clock.monotonic()
        sent = await _change(bus, groups, clock)
        used = (cpu(pid) - before) / (clock.monotonic() - began)
        await asyncio.sleep(2)
        for task in tasks:
            if task.done():
                task.result()  # says why
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {"viewers": VIEWERS, "cpu_of_a_core_100_viewers": round(used, 3),
            "missed_beside_slow_viewer": sent * VIEWERS - sum(counts)}  # fmt: skip


@asynccontextmanager
async def _slow_viewer(url: str) -> AsyncIterator[None]:
    """One who asks for the stream and reads nothing of it: the kernel holds 4 kB, and the server's writes soon wait."""
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect((host, int(port)))
        slow.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        yield


async def _view(http: aiohttp.ClientSession, url: str, counts: list[int], number: int) -> None:
    known: set[bytes] | None = None
    seen: set[bytes] = set()
    async with http.get(f"{url}/api/v1/events") as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                found = set(re.findall(rb"sent \d+ ", line))
                known = found if known is None else known  # what the first event has was sent before
                seen |= found - known
                counts[number] = len(seen)
