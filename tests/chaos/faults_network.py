"""The network is parted: between one reactor and everything else, or between NATS servers. Needs namespaces."""

from __future__ import annotations

import asyncio
from random import Random
from urllib.parse import urlsplit

from tests.chaos import namespaces
from tests.chaos.faults import Fault
from tests.chaos.faults_bus import BACK
from tests.chaos.faults_process import TAKEN_OVER
from tests.chaos.fleet import Member
from tests.chaos.nodes import COUNT, Node, agreed, cut, mend
from tests.chaos.proxy import proxy
from tests.chaos.world import World

NAME, ADDRESS = "far", "10.77.0.2"


async def part(world: World, random: Random) -> None:
    """A third reactor, on a cable of its own, loses the bus and the API server at once; twice, over a lease or less."""
    async with world.trouble(recovery=TAKEN_OVER):
        far = next((member for member in world.members if member.name == NAME), None) or await _far(world)
    for _ in range(2):
        await asyncio.sleep(random.uniform(0.5, 2))
        async with world.trouble(recovery=TAKEN_OVER):
            namespaces.unplug(far.link)
            await asyncio.sleep(random.uniform(0.5, 6))
            namespaces.plug(far.link)


async def part_nodes(world: World, random: Random) -> None:
    """One of three NATS servers loses the others, and they it, while their clients still reach all; twice."""
    nodes = [server for server in world.servers if isinstance(server, Node)]
    for _ in range(2):
        await asyncio.sleep(random.uniform(0.5, 2))
        one, *others = random.sample(nodes, COUNT)
        async with world.trouble(recovery=BACK + TAKEN_OVER):
            for other in others:
                cut(one, other)
            await asyncio.sleep(random.uniform(1, 9))
            for other in others:
                mend(one, other)
            await agreed(nodes)


async def _far(world: World) -> Member:
    """Start it. Servers listen on loopback only, so its cable ends at proxies on our side."""
    bus, kube = await _reachable(world, world.server.url), await _reachable(world, world.emulator.url(""))
    kubeconfig = world.folder / "kubeconfig.far"
    near = urlsplit(world.emulator.url("")).netloc
    kubeconfig.write_text((world.folder / "kubeconfig").read_text("utf-8").replace(near, kube), "utf-8")
    password, at, _ = urlsplit(world.server.url).netloc.rpartition("@")
    far = world.member(NAME, bus=[f"nats://{password}{at}{bus}"], kubeconfig=kubeconfig, address=ADDRESS)
    await far.start()
    world.supervise(far)
    return far


async def _reachable(world: World, url: str) -> str:
    """Give the address at which others reach what listens on our loopback."""
    address = urlsplit(url)
    link = await world.cleanup.enter_async_context(
        proxy(address.hostname or "", address.port or 0, listen=namespaces.OURS)
    )
    return f"{namespaces.OURS}:{link.port}"


FAULTS = (
    Fault("network:parted", part, seconds=16, lacks=namespaces.lacks, apart=True),
    Fault("nats:parted", part_nodes, seconds=20, nodes=COUNT, lacks=namespaces.lacks, apart=True),
)
