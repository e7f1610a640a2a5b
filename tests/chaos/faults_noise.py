"""Deliveries that a bus may make: repeated, late, out of order, and from clocks that are ahead."""

from __future__ import annotations

import asyncio
from random import Random

from bus.errors import BusError
from tests.chaos import scene
from tests.chaos.faults import Fault
from tests.chaos.world import World


async def noise(world: World, random: Random) -> None:
    """Publish observations that are true and old, doubled, shuffled, or stamped with the future."""
    targets = [scene.target(plan, plan.name) for plan in world.script if plan.told_by_bus]
    while world.now < world.seconds:
        batch, chosen = [], {target: world.stranger.healthy[target] for target in random.sample(targets, 5)}
        for target in chosen:
            now = world.stranger.observation(target)
            # Before the script began everything was healthy: an old word that is true, and undoes nothing newer.
            old = world.stranger.observation(target, ago=world.now + random.uniform(1, 60), healthy=True)
            ahead = world.stranger.observation(target, ago=-random.uniform(1, 3600))
            batch += [now, now._replace(id=f"{now.id}/again"), old, ahead]
        random.shuffle(batch)
        try:
            await world.bus.publish_all(batch)
        except BusError as error:
            world.note(f"noise was not taken: {error}")
        for target, before in chosen.items():
            if (healthy := world.stranger.healthy[target]) is not before:
                # What is dated in the future counts as said when the bus took it: this turn came before that.
                world.stranger.turn(target, healthy=healthy)
        await asyncio.sleep(random.uniform(0.1, 0.4))


FAULTS = (Fault("noise", noise),)
