"""Faults of reactor processes: kill -9 at named points, SIGSTOP over leases, rolling restarts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from functools import partial
from random import Random

from reactor.runtime.failpoints import NAMES
from tests.chaos.faults import Fault, Inflict
from tests.chaos.fleet import RESTART_SECONDS
from tests.chaos.member import ACK_WAIT, LEASE
from tests.chaos.world import World

TAKEN_OVER = ACK_WAIT.total_seconds() + 2
"""Seconds after which another one has all that a dead process had in its hands."""
REACHED_WITHIN = 6.0
OFTEN = {
    "decider.fact-read": 50,
    "decider.groups-stored": 10,
    "decider.checkpointed": 10,
    "router.taken": 20,
    "router.before-ack": 20,
}
"""Points that are passed many times in a second or two: the kill comes at any of so many."""
TAKING_OVER = ("decider.epoch-taken", "decider.loaded")
"""Points that only who starts to own something comes by."""


async def nothing(world: World, random: Random) -> None:
    """No fault at all: what the others are compared with."""


async def kill_at(names: Sequence[str], world: World, random: Random) -> None:
    """Kill reactors in turn, each when it reaches one of these points; each comes again without a failpoint."""
    for number, name in enumerate(random.sample(names, len(names))):
        member = world.members[number % len(world.members)]
        order = f"{name}:{random.randint(1, OFTEN.get(name, 1))}"
        async with world.trouble(recovery=1.0):
            if name in TAKING_OVER:
                await member.stop()
                await member.launch(order)
            else:
                member.arm(order)
            member.wanted = False  # it is started again here
            dead = await member.until_dead(REACHED_WITHIN)
        if not dead:
            member.wanted = True
            member.arm("")
            world.note(f"{name} was not reached by {member.name}")
            continue
        async with world.trouble(recovery=TAKEN_OVER):
            await asyncio.sleep(RESTART_SECONDS)
            await member.start()


async def kill_any(world: World, random: Random) -> None:
    """Kill reactors at any moment."""
    while world.now < world.seconds - 2:
        await asyncio.sleep(random.uniform(0.5, 3))
        member = random.choice(world.members)
        async with world.trouble(recovery=TAKEN_OVER):
            await member.kill()
            await asyncio.sleep(random.uniform(0, 1))
            await member.start()


async def pause(leases: int, world: World, random: Random) -> None:
    """Stop one process over so many leases, and let it go on as if nothing had been."""
    await asyncio.sleep(random.uniform(1, 5))
    member = random.choice(world.members)
    async with world.trouble(recovery=TAKEN_OVER):
        member.signal(signal.SIGSTOP)
        await asyncio.sleep(leases * LEASE + random.uniform(-0.3, 0.3))
        member.signal(signal.SIGCONT)


async def pause_all(world: World, random: Random) -> None:
    """The machine sleeps: every reactor is stopped at once, over a lease."""
    await asyncio.sleep(random.uniform(1, 5))
    async with world.trouble(recovery=TAKEN_OVER):
        for member in world.members:
            member.signal(signal.SIGSTOP)
        await asyncio.sleep(1.5 * LEASE)
        for member in world.members:
            member.signal(signal.SIGCONT)


async def rolling_restart(world: World, random: Random) -> None:
    """Scale from one to five, restart each of them, then scale down to two: all orderly. Only while a source changes
    hands, which it does a dozen times here, may what it sees be late on a machine that is busy."""
    for number in range(len(world.members), MOST):
        world.member(f"reactor-{number}")
    others = world.members[1:]
    for member in others:
        if member.starts:
            await member.stop()
    async with world.trouble(recovery=1.0):
        for member in others:
            await asyncio.sleep(random.uniform(0.1, 0.8))
            await member.start()
        for member in random.sample(world.members, MOST):
            await member.stop()
            await member.start()
        for member in random.sample(others, MOST - 2):
            await asyncio.sleep(random.uniform(0.1, 0.8))
            await member.stop()


MOST = 5
"""Reactors that there are in the middle of a rolling restart."""


def _kill(name: str, points: Sequence[str], *, in_ci: bool) -> Fault:
    inflict: Inflict = partial(kill_at, points)
    return Fault(name, inflict, seconds=8.0 + 3.5 * len(points), in_ci=in_ci)


ROLES = ("decider", "executor", "router")
FAULTS = (
    Fault("none", nothing),
    *(_kill(f"kill:{role}", [n for n in NAMES if n.startswith(role)], in_ci=True) for role in ROLES),
    *(_kill(f"kill:{name}", [name], in_ci=False) for name in NAMES),
    Fault("kill:any", kill_any),
    *(Fault(f"pause:{leases}-leases", partial(pause, leases), seconds=9 + leases * LEASE) for leases in (1, 2, 5)),
    Fault("pause:all", pause_all),
    Fault("rolling-restart", rolling_restart, seconds=18),
)  # fmt: skip
