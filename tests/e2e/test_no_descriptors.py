"""File descriptors are used up for a while: what is well keeps its traffic, and what is bad is left afterwards.

A probe that cannot open a connection because its own process has no descriptors has learned nothing of its target.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from reactor.demo.kube import Fault
from reactor.demo.kube.faults import CutWatch
from reactor.runtime.lines import AGAIN_SECONDS
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until

# It measures in seconds how soon a process acts that has descriptors again.
pytestmark = pytest.mark.alone
WORDS = 'msg="this process has no file descriptors left'
ACTS_WITHIN = 5.0
"""Seconds after which what is bad is left once there are descriptors again."""
TOLERATION = 2.0
TOO_LATE = "reason=SourceSilent"
"""Of the log, two seconds after the end of a window that no source can prove without descriptors."""


Shortage = Callable[[Service], AbstractContextManager[None]]


@pytest.fixture
async def healthy_url() -> AsyncIterator[str]:
    """A server that always answers 200."""

    async def look(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_get("/", look)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site.name
    await runner.cleanup()


@contextmanager
def lower_limit(service: Service) -> Iterator[None]:
    """Lower its limit to what it has: what the process closes does not help it either."""
    pid = service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextmanager
def idle_connections(service: Service) -> Iterator[None]:
    """Keep connections to its webhook open until it has no descriptor left."""
    pid = service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 10, before[1]))
    address = urlsplit(service.url)
    with ExitStack() as opened:
        for _ in range(highest + 30):
            opened.enter_context(socket.create_connection((address.hostname or "", address.port or 0)))
        yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("shortage", "probe", "cut"),
    [(lower_limit, "http", True), (lower_limit, "tcp", False), (idle_connections, "http", False)],
    ids=["the limit, and the watches are cut", "the limit", "connections"],
)
async def test_a_process_without_descriptors_leaves_nothing_that_is_well_and_acts_once_it_has_some(
    shop: Shop, reactor: MakeReactor, healthy_url: str, shortage: Shortage, probe: str, *, cut: bool
) -> None:
    shop.endpoints("checkout", ready=2)
    shop.split("checkout", "fallback")
    shop.split("probed", "fallback")
    where = urlsplit(healthy_url)
    how = {
        "http": f'kind: HttpProbe, url: "{healthy_url}/"',
        "tcp": f"kind: TcpProbe, host: {where.hostname}, port: {where.port}",
    }[probe]
    source = f"\n- {{name: looks, target: service/east/shop/probed, everySeconds: 1, timeoutSeconds: 1, {how}}}\n"
    async with reactor(document(source, rules=failover(toleration=TOLERATION))) as service:
        await service.settled(2)
        with shortage(service):
            shop.endpoints("checkout", ready=0)
            if cut:  # then the API server cannot be asked either
                shop.east.faults.add(Fault(CutWatch(), resource="endpointslices"))
            await until(lambda: WORDS in service.log.read_text(), "it says what it lacks")
            await until(lambda: TOO_LATE in service.log.read_text() or shop.moves("checkout"), "its window is over")
            assert shop.moves("probed") == []
        began = time.monotonic()
        await until(lambda: shop.moves("checkout") == ["away"], "the route that is bad is failed over")
        print(f"left {time.monotonic() - began:.1f} s after there were descriptors again")
        assert time.monotonic() - began < ACTS_WITHIN
        await until_ready_again(service)
        assert shop.moves("probed") == []
        said = service.log.read_text()
    assert service.process.returncode == 0
    assert "Traceback" not in said
    times = [
        datetime.fromisoformat(line.split()[0].removeprefix("time=")) for line in said.splitlines() if WORDS in line
    ]
    assert all((later - one).total_seconds() > AGAIN_SECONDS - 1 for one, later in pairwise(times))


async def until_ready_again(service: Service) -> None:
    """Its health, its bus and its sources are as before."""
    async with asyncio.timeout(ACTS_WITHIN):
        while not await service.is_ready():
            await asyncio.sleep(0.1)
