"""A fleet of two releases: it is upgraded, rolled back, and killed while both decide side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from tests import earlier
from tests.chaos.faults import Fault
from tests.chaos.faults_process import kill_any
from tests.chaos.fleet import Member
from tests.chaos.nursery import Nursery
from tests.chaos.world import World


async def _becomes(world: World, member: Member, release: Nursery) -> None:
    """An orderly restart, as a rollout makes it."""
    async with world.trouble(recovery=1.0):
        await member.stop()
        member.nursery = release
        await member.start()


async def rolled(world: World, random: Random) -> None:
    """From the earlier release to this one, back, and here again, one process after the other."""
    assert world.earlier is not None
    for release in (world.nursery, world.earlier, world.nursery):
        for member in random.sample(world.members, len(world.members)):
            await asyncio.sleep(random.uniform(0.5, 2))
            await _becomes(world, member, release)


async def killed_side_by_side(world: World, random: Random) -> None:
    """One process is of this release, the other of the earlier one; either is killed at any moment."""
    await _becomes(world, random.choice(world.members), world.nursery)
    await kill_any(world, random)


def _installed(folder: Path) -> Path:
    return earlier.installed(folder / "earlier")


FAULTS = (
    Fault("upgrade:rolled", rolled, seconds=18, lacks=earlier.lacks, earlier=_installed),
    Fault("upgrade:killed-side-by-side", killed_side_by_side, seconds=14, lacks=earlier.lacks, earlier=_installed),
)
