"""Faults on the network between one reactor and the bus, while the other has a good connection."""

from __future__ import annotations

import asyncio
from random import Random
from urllib.parse import urlsplit

from tests.chaos.faults import Fault
from tests.chaos.faults_process import TAKEN_OVER
from tests.chaos.proxy import Link, proxy
from tests.chaos.world import World


async def _through(world: World, random: Random, slow: float, *, half_open: bool) -> None:
    """Start a third reactor behind a proxy, and let it suffer."""
    address = urlsplit(world.server.url)
    login = "".join(address.netloc.rpartition("@")[:2])
    async with proxy(address.hostname or "", address.port or 0) as link:
        member = world.member(f"far-{world.act.seed}", bus=[f"nats://{login}127.0.0.1:{link.port}"])
        async with world.trouble(recovery=TAKEN_OVER):
            await member.start()
            link.delay = slow
            if half_open:
                await _stutter(link, random)
            await asyncio.sleep(max(world.seconds - 2 - world.now, 0))
            await member.kill()


async def _stutter(link: Link, random: Random) -> None:
    for _ in range(2):
        await asyncio.sleep(random.uniform(0.5, 2))
        link.open.clear()
        await asyncio.sleep(random.uniform(1, 5))
        link.open.set()
        if random.random() < 0.5:
            link.cut()


async def slow(world: World, random: Random) -> None:
    """Each chunk takes a fifth of a second, each way."""
    await _through(world, random, random.uniform(0.05, 0.3), half_open=False)


async def half_open(world: World, random: Random) -> None:
    """Nothing comes through for seconds, and then all of it, late; or the connection is reset."""
    await _through(world, random, 0.0, half_open=True)


FAULTS = (Fault("link:slow", slow, seconds=12), Fault("link:half-open", half_open, seconds=16))
