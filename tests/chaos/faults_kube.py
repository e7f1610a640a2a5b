"""Faults between the reactors and the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from reactor.demo.kube import (
    CutWatch,
    Delay,
    EndWatch,
    FailWatch,
    Hang,
    Html,
    LoseAnswer,
    Reset,
    Stale,
    StatusFault,
    TruncateWatch,
)
from reactor.demo.kube import Fault as Mishap
from reactor.demo.kube.faults import WatchEffect
from tests.chaos.faults import Fault
from tests.chaos.world import World

SPLITS = "trafficsplits"
BACK = 6.0
"""Seconds after which a failed action has been tried again: the first retry waits one second, the next ones longer."""


async def befall(mishaps: Sequence[Mishap], world: World, random: Random) -> None:
    """Let one of these be in force for a second or two, then another, until the script is nearly over."""
    while world.now < world.seconds - 3:
        await asyncio.sleep(random.uniform(0.5, 1.5))
        async with world.trouble(recovery=BACK):
            handle = world.cluster.faults.add(random.choice(mishaps))
            await asyncio.sleep(random.uniform(1, 2))
            handle.remove()


async def stale(world: World, random: Random) -> None:
    """Reads of splits are answered as the world was some seconds ago."""
    while world.now < world.seconds - 3:
        old = world.cluster.resource_version
        await asyncio.sleep(random.uniform(1, 3))
        async with world.trouble(recovery=BACK):
            handle = world.cluster.faults.add(Mishap(Stale(old), verb="read", resource=SPLITS))
            await asyncio.sleep(random.uniform(1, 2))
            handle.remove()


async def watches(world: World, random: Random) -> None:
    """Watches are cut, ended, expired and broken in the middle of a line, again and again."""
    while world.now < world.seconds - 3:
        await asyncio.sleep(random.uniform(0.5, 2))
        async with world.trouble(recovery=BACK):
            if random.random() < 0.3:
                world.cluster.compact()
            world.cluster.cut_watches(random.choice(_ENDS))


_ENDS: list[WatchEffect] = [CutWatch(), EndWatch(), FailWatch(410), TruncateWatch()]


def _writes(*effects: object) -> list[Mishap]:
    return [Mishap(effect, verb="write", resource=SPLITS) for effect in effects]  # type: ignore[arg-type]


_REFUSALS = [*_writes(*(StatusFault(code) for code in (409, 410, 500, 503)), StatusFault(429, retry_after=1), Html())]
_ALL = [Mishap(StatusFault(503)), Mishap(StatusFault(429, retry_after=1)), Mishap(Reset()), Mishap(Hang())]

FAULTS = (
    Fault("api:refuses", partial(befall, _REFUSALS)),
    Fault("api:loses-answers", partial(befall, _writes(LoseAnswer(), Delay(1.5, answered_late=True), Delay(1.0)))),
    Fault("api:hangs", partial(befall, [*_writes(Hang(), Reset()), *_ALL])),
    Fault("api:stale", stale),
    Fault("api:watches", watches),
)
