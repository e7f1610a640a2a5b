"""The bus goes away while alerts come in: nothing is taken that could be lost, and nothing that was taken is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bus.embedded import EmbeddedServer
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.servers import Alertmanager
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.tap import tapping
from tests.e2e.waiting import until

RULES = document(ALERTS, rules=failover())
ALERTS_POSTED = 40
SENDERS = 4
TRY_AGAIN_SECONDS = 0.2


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A bus of its own, so that it can be hurt alone."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@asynccontextmanager
async def frozen(nats: EmbeddedServer) -> AsyncIterator[None]:
    """The bus does not answer while the block runs; its connections stay open."""
    os.kill(nats.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(nats.pid, signal.SIGCONT)


async def test_alertmanager_hears_503_while_the_bus_is_away_and_delivers_later(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer, tmp_path: Path
) -> None:
    shop.split("checkout", "fallback")
    async with tapping() as tap:
        alertmanager = Alertmanager(tmp_path / "alertmanager", posts_to=[f"{tap.url}/v1/alerts/am"])
        async with alertmanager, reactor(RULES, bus={"url": nats.url}) as service:
            tap.forwards_to = service.url
            await service.settled(1)
            async with frozen(nats):
                await alertmanager.fire("checkout")
                await until(lambda: [post.code for post in tap.posts] == [503], "the first post is answered 503")
                assert not await service.is_ready()
            await until(lambda: tap.taken("checkout", "firing"), "Alertmanager has come again, and was heard")
            await until(lambda: shop.moves("checkout") == ["away"], "the alert is acted on")


async def test_whatever_was_answered_200_is_acted_on_once_although_the_bus_was_killed(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer
) -> None:
    names = [f"s{number:02d}" for number in range(ALERTS_POSTED)]
    shop.splits(names, "fallback")
    async with reactor(RULES, bus={"url": nats.url}) as service:
        await service.settled(len(names))
        left = list(reversed(names))
        codes: Counter[int] = Counter()

        async def send() -> None:
            while left:
                await _deliver(service, left.pop(), codes)

        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(send())
            await until(lambda: codes[200] >= ALERTS_POSTED // 4, "a quarter is taken")
            await nats.kill()
            await until(lambda: codes[503], "somebody is told that nothing can be taken")
            taken = codes[200]
            await nats.start()
        print(f"{taken} answered 200 before the kill, {codes[503]} answered 503, {codes[200]} answered 200 in all")
        assert codes[200] == ALERTS_POSTED
        await until(lambda: {write.name for write in shop.writes()} == set(names), "every alert is acted on")
        assert {name: shop.moves(name) for name in names} == {name: ["away"] for name in names}


async def _deliver(service: Service, name: str, codes: Counter[int]) -> None:
    """Post until it is taken, as Alertmanager does."""
    while True:
        try:
            code = await service.post(body(firing(name)))
        except aiohttp.ClientError:
            code = 0
        codes[code] += 1
        if code == 200:
            return
        await asyncio.sleep(TRY_AGAIN_SECONDS)
