"""Faults of the bus: killed, frozen, wiped, one node of three gone, a full disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from random import Random

from tests.chaos.faults import Fault
from tests.chaos.faults_process import TAKEN_OVER
from tests.chaos.member import ROUTES_AGAIN
from tests.chaos.nodes import agreed
from tests.chaos.world import World

BACK = 4.0
"""Seconds after which all processes work again once the bus is there: noticed, reconnected, published again."""


async def kill(world: World, random: Random) -> None:
    """Kill the server and start it again on its store, twice."""
    for _ in range(2):
        await asyncio.sleep(random.uniform(1, 4))
        async with world.trouble(recovery=BACK + TAKEN_OVER):
            await world.server.kill()
            await asyncio.sleep(random.uniform(0.2, 3))
            await world.server.start()


async def freeze(world: World, random: Random) -> None:
    """The server does not answer for some seconds, and the connections stay as they are."""
    await asyncio.sleep(random.uniform(1, 5))
    async with world.trouble(recovery=BACK + TAKEN_OVER):
        os.kill(world.server.pid, signal.SIGSTOP)
        await asyncio.sleep(random.uniform(2, 8))
        os.kill(world.server.pid, signal.SIGCONT)


async def wipe(world: World, random: Random) -> None:
    """The whole store is gone, and the server comes back empty."""
    await asyncio.sleep(random.uniform(1, 7))
    async with world.trouble(recovery=BACK + TAKEN_OVER + ROUTES_AGAIN):
        await world.server.kill()
        shutil.rmtree(world.server.folder / "store")
        world.wipes.append(asyncio.get_running_loop().time())
        await world.server.start()


async def lose_a_node(world: World, random: Random) -> None:
    """One of three servers is killed and comes back later; then another one."""
    for server in random.sample(world.servers, 2):
        await asyncio.sleep(random.uniform(0.5, 2.5))
        async with world.trouble(recovery=BACK + TAKEN_OVER):
            await server.kill()
            await asyncio.sleep(random.uniform(2, 5))
            await server.start()
            await agreed(world.servers)


FAULTS = (
    Fault("nats:kill", kill, seconds=14),
    Fault("nats:freeze", freeze, seconds=14),
    Fault("nats:wipe", wipe, seconds=12),
    Fault("nats:one-of-three", lose_a_node, seconds=16, nodes=3),
)
