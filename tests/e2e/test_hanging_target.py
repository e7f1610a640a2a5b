"""A target that hangs: each look at it takes as long as its time-out, and yet it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document, failover
from tests.e2e.shop import Shop
from tests.e2e.waiting import until


class Target:
    """An HTTP server that answers at once, or never."""

    def __init__(self) -> None:
        self.url = ""
        self.answers = asyncio.Event()
        self.answers.set()

    async def look(self, _: web.Request) -> web.Response:
        """Answer when it answers."""
        await self.answers.wait()
        return web.Response()


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    """The target, which answers."""
    target = Target()
    app = web.Application()
    app.router.add_get("/", target.look)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    target.url = site.name
    yield target
    target.answers.set()
    await runner.cleanup()


async def test_a_target_that_hangs_is_left_though_each_look_at_it_takes_five_seconds(
    shop: Shop, reactor: MakeReactor, target: Target
) -> None:
    shop.split("checkout", "fallback")
    probe = f"""
- {{name: hangs, kind: HttpProbe, target: service/east/shop/checkout, url: "{target.url}/", everySeconds: 6,
   timeoutSeconds: 5, failureThreshold: 1}}
"""
    async with reactor(document(probe, rules=failover(toleration=4))) as service:
        await service.settled(1)
        target.answers.clear()
        await until(lambda: shop.moves("checkout") == ["away"], "the route is failed over", within=60)
