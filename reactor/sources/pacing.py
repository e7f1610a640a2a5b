"""A reading every so many seconds, never two of the same source at once.

APScheduler keeps the pace, by the wall clock: a clock that is set back would silence it for as long as the jump is
wide. So the pace is watched on the monotonic clock, and set anew where it has stopped.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from math import inf

from reactor.sources.world import World

SPREAD_SECONDS_MAX = 1.0  # a thousand probes that start together would fire together for ever

log = logging.getLogger(__name__)


class Pace:
    """Takes readings at an interval, and knows whether it still does."""

    def __init__(
        self, world: World, reading: Callable[[], Awaitable[None]], *, name: str, every_seconds: float,
        timeout_seconds: float,
    ) -> None:  # fmt: skip
        self._world = world
        self._reading = reading
        self._name = name
        self._every = every_seconds
        self._overdue = 2 * every_seconds + timeout_seconds
        self._taken_at = world.clock.monotonic()

    @property
    def alive(self) -> bool:
        """Whether a reading ended not longer ago than two intervals and a timeout."""
        return self._world.clock.monotonic() - self._taken_at < self._overdue

    @property
    def vouched(self) -> float | None:
        """Each reading vouches for what it found; None where they have stopped."""
        return inf if self.alive else None

    async def run(self) -> None:
        """Keep the pace until cancelled."""
        await self._world.clock.sleep(random.uniform(0, min(self._every, SPREAD_SECONDS_MAX)))  # noqa: S311 - spreads load
        await self._take()
        job = self._world.scheduler.add_job(
            self._take, "interval", seconds=self._every, name=self._name, max_instances=1, coalesce=True,
            misfire_grace_time=None,
        )  # fmt: skip
        try:
            while True:
                await self._world.clock.sleep(self._every)
                if not self.alive:
                    log.warning("readings have stopped, starting them again", extra={"source": self._name})
                    self._taken_at = self._world.clock.monotonic()
                    job.reschedule("interval", seconds=self._every)
        finally:
            job.remove()

    async def _take(self) -> None:
        await self._reading()
        self._taken_at = self._world.clock.monotonic()
