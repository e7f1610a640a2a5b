"""Outages of the API server: away, frozen, slow, restored; silent or cut watches; lists that lack what is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from reactor.demo.kube import Delay, Empty, EmulatedCluster, EndWatch, FailWatch, Forbid, Hang, Html
from reactor.demo.kube import Fault as Mishap
from tests.chaos.outages import outage
from tests.chaos.script import Source
from tests.chaos.world import World

IN_THE_API: frozenset[Source] = frozenset(("slices", "copies"))
RESTORED_LIMIT = 60.0
SLOW_SECONDS = 5.0
"""Of each answer of a slow API server; what was asked last comes so much after it is quick again."""
FLAP_SECONDS = 2.0
"""Seconds for which a flapping API server is away, and there, each time."""


@asynccontextmanager
async def api_away(world: World) -> AsyncIterator[None]:
    """Connections are refused, watches were cut."""
    await world.emulator.close()
    yield
    await world.emulator.__aenter__()


@asynccontextmanager
async def api_frozen(world: World) -> AsyncIterator[None]:
    """Requests are taken, and nothing is answered or sent."""
    handles = _everywhere(world, Mishap(Hang()))
    for cluster in world.emulator.clusters.values():
        cluster.events_flow.clear()
    yield
    for cluster in world.emulator.clusters.values():
        cluster.events_flow.set()
    for handle in handles:
        handle.remove()


@asynccontextmanager
async def api_slow(world: World) -> AsyncIterator[None]:
    """Each answer and each event takes five seconds; writes are carried out at once."""
    slow = (Mishap(Delay(SLOW_SECONDS), verb="read"), Mishap(Delay(SLOW_SECONDS, answered_late=True), verb="write"))
    handles = [handle for one in slow for handle in _everywhere(world, one)]
    for cluster in world.emulator.clusters.values():
        cluster.watch_lag = SLOW_SECONDS
    yield
    for cluster in world.emulator.clusters.values():
        cluster.watch_lag = 0.0
    for handle in handles:
        handle.remove()


@asynccontextmanager
async def watches_silent(world: World) -> AsyncIterator[None]:
    """Watches stay open and send nothing; everything else works."""
    for cluster in world.emulator.clusters.values():
        cluster.events_flow.clear()
    yield
    for cluster in world.emulator.clusters.values():
        cluster.events_flow.set()


@asynccontextmanager
async def watches_late(world: World) -> AsyncIterator[None]:
    """Each event comes five seconds late; everything else works."""
    for cluster in world.emulator.clusters.values():
        cluster.watch_lag = SLOW_SECONDS
    yield
    for cluster in world.emulator.clusters.values():
        cluster.watch_lag = 0.0


@asynccontextmanager
async def watches_cut(world: World) -> AsyncIterator[None]:
    """Watches are reset, and none begins."""
    handles = _everywhere(world, Mishap(Hang(), verb="watch"))
    for cluster in world.emulator.clusters.values():
        cluster.cut_watches()
    yield
    for handle in handles:
        handle.remove()


@asynccontextmanager
async def lists_empty(every: int, world: World) -> AsyncIterator[None]:
    """All that was watched has to be listed again, and lists lack each so many-th of their items, or all."""
    handles = _everywhere(world, Mishap(Empty(every), verb="list", resource="endpointslices"))
    for cluster in world.emulator.clusters.values():
        cluster.cut_watches(FailWatch(410))
    yield
    for handle in handles:
        handle.remove()
    for cluster in world.emulator.clusters.values():
        cluster.cut_watches(FailWatch(410))


@asynccontextmanager
async def api_restored(change: Callable[[int], int], world: World) -> AsyncIterator[None]:
    """Watches fall silent; then the server has other resource versions, and tells none of what changed meanwhile."""
    world.blind_grace, world.dark = RESTORED_LIMIT, False
    for cluster in world.emulator.clusters.values():
        cluster.events_flow.clear()
    yield
    for cluster in world.emulator.clusters.values():
        cluster.restore(change(cluster.resource_version))
        cluster.events_flow.set()


@asynccontextmanager
async def api_flaps(world: World) -> AsyncIterator[None]:
    """Away for two seconds, there for two seconds, all the time."""

    async def flap() -> None:
        while True:
            await world.emulator.close()
            try:
                await asyncio.sleep(FLAP_SECONDS)
            finally:
                await asyncio.shield(world.emulator.__aenter__())
            await asyncio.sleep(FLAP_SECONDS)

    task = asyncio.create_task(flap())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def reads_befallen(effect: Any, world: World) -> AsyncIterator[None]:
    """This befalls each LIST and each new watch, and all watches were cut."""
    handles = [handle for verb in ("list", "watch") for handle in _everywhere(world, Mishap(effect, verb=verb))]
    for cluster in world.emulator.clusters.values():
        cluster.cut_watches()
    yield
    for handle in handles:
        handle.remove()


@asynccontextmanager
async def watches_end(world: World) -> AsyncIterator[None]:
    """Each watch ends at once, in order, as behind a proxy that takes none."""
    handles = _everywhere(world, Mishap(EndWatch(), verb="watch"))
    for cluster in world.emulator.clusters.values():
        cluster.cut_watches()
    yield
    for handle in handles:
        handle.remove()


def _everywhere(world: World, mishap: Mishap) -> list[Any]:
    clusters: list[EmulatedCluster] = list(world.emulator.clusters.values())
    return [cluster.faults.add(mishap) for cluster in clusters]


FAULTS = (
    outage("outage:api-away", api_away, IN_THE_API),
    outage("outage:api-frozen", api_frozen, IN_THE_API, in_ci=False),
    outage("outage:api-slow", api_slow, recovery=SLOW_SECONDS, in_ci=False),
    outage("outage:watches-silent", watches_silent),
    outage("outage:watches-late", watches_late, recovery=SLOW_SECONDS, in_ci=False),
    outage("outage:watches-cut", watches_cut, in_ci=False),
    outage(
        "outage:lists-empty", partial(lists_empty, 1), recovery=10.0, length=(10.0, 14.0), sources=("slices",),
        in_ci=False,
    ),
    outage(
        "outage:lists-lack-a-third", partial(lists_empty, 3), recovery=10.0, length=(10.0, 14.0), sources=("slices",),
        in_ci=False,
    ),
    outage(
        "outage:api-restored-higher", partial(api_restored, lambda now: now + 1000), IN_THE_API, sources=("slices",),
        in_ci=False,
    ),
    outage(
        "outage:api-restored-lower", partial(api_restored, lambda now: now // 2), IN_THE_API, sources=("slices",),
        in_ci=False,
    ),
    outage("outage:api-flaps", api_flaps, in_ci=False),
    outage("outage:lists-forbidden", partial(reads_befallen, Forbid()), IN_THE_API, sources=("slices",), in_ci=False),
    outage("outage:lists-html", partial(reads_befallen, Html()), IN_THE_API, sources=("slices",), in_ci=False),
    outage("outage:watches-end", watches_end, in_ci=False),
)  # fmt: skip
