"""People who give commands: each command is given again until the bus has taken it. Here they pause rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf

from bus.errors import Unavailable
from bus.messages import AnyCommand, Pause, Resume
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from tests.simulation.fleet.loop import START, VirtualLoop
from tests.simulation.fleet.scenario import PausedRule

AGAIN = 1.0
"""Seconds after which a command that the bus did not take is given again."""


@dataclass(slots=True)
class PauseSeen:
    """One pause as it came about."""

    name: str
    """Of the rule."""
    begin: float
    """Second at which the bus had taken it."""
    ended: float = inf
    """Second at which the resume was given: from then on acts may begin."""
    end: float = inf
    """Second at which the bus had taken the resume: from then on acts are due."""


class Speaker:
    """A person's way to give commands, and the time by that person's clock."""

    def __init__(self, publisher: FactPublisher, clock: Clock, loop: VirtualLoop) -> None:
        self._publisher, self.clock, self._loop = publisher, clock, loop

    def time(self) -> float:
        """Virtual seconds."""
        return self._loop.time()

    async def until(self, at: float) -> None:
        """Wait until this second from the start; not at all where it is over."""
        await self.clock.sleep(max(START + at - self.time(), 0.0))

    async def give(self, command: AnyCommand) -> None:
        """Give it until the bus has taken it."""
        while True:
            try:
                await self._publisher.publish(command)
            except Unavailable:
                await self.clock.sleep(AGAIN)
            else:
                return


async def pause_rules(speaker: Speaker, pauses: tuple[PausedRule, ...], seen: list[PauseSeen]) -> None:
    """Pause and resume rules in their time. `seen`: takes what came about."""
    async with asyncio.TaskGroup() as group:
        for pause in pauses:
            group.create_task(_pause(speaker, pause, seen))


async def _pause(speaker: Speaker, pause: PausedRule, all_seen: list[PauseSeen]) -> None:
    await speaker.until(pause.begin)
    name, by, reason = pause.name, "ops", "to look at it"
    await speaker.give(Pause(rule=name, by=by, reason=reason, observed_at=speaker.clock.now()))
    seen = PauseSeen(pause.name, speaker.time())
    all_seen.append(seen)
    await speaker.until(pause.end)
    seen.ended = speaker.time()
    await speaker.give(Resume(rule=name, by=by, reason=reason, observed_at=speaker.clock.now()))
    seen.end = speaker.time()
