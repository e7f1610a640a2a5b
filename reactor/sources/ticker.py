"""A reading every so many seconds, never two of the same source at once, and one more when it is asked for.

APScheduler keeps the pace, by the wall clock: a clock that is set back would silence it for as long as the jump is
wide. So the pace is watched on the monotonic clock, and set again where it has stopped. The scheduler only rings: the
reading is taken in the source's own task, and ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import datetime
from typing import Any, Protocol

from reactor.sources.source_context import SourceContext
from reactor.sources.standing_fact import LONG_AGO

SPREAD_SECONDS_MAX = 1.0  # a thousand probes that start together would fire together without end

log = logging.getLogger(__name__)


class PacedCall(Protocol):
    """Takes one reading, and says what it found. `extra`: it was asked for, between two that are due."""

    async def __call__(self, *, extra: bool) -> None: ...


class Ticker:
    """Takes readings at an interval, and knows whether it still does."""

    def __init__(
        self, world: SourceContext, reading: PacedCall, *, name: str, every_seconds: float, timeout_seconds: float
    ) -> None:
        self._world = world
        self._reading = reading
        self._name = name
        self._every = every_seconds
        self._overdue = 2 * every_seconds + timeout_seconds
        self._taken_at = world.clock.monotonic()
        self._rung = asyncio.Event()
        self._due = True
        self._not_before: datetime | None = None

    @property
    def alive(self) -> bool:
        """True if a reading ended not longer ago than two intervals and a timeout."""
        return self._world.clock.monotonic() - self._taken_at < self._overdue

    def seen(self, _: str) -> datetime | None:
        """Each reading says for itself when it saw what it found; None where they have stopped."""
        return LONG_AGO if self.alive else None

    def look_again(self, not_before: datetime) -> None:
        """Take a reading that begins at this moment or later, as soon as the one under way has ended."""
        self._not_before = max(not_before, self._not_before or not_before)
        self._rung.set()

    async def run(self) -> None:
        """Keep the pace until cancelled."""
        await self._world.clock.sleep(random.uniform(0, min(self._every, SPREAD_SECONDS_MAX)))  # noqa: S311 - spreads load
        job = self._world.scheduler.add_job(
            self._ring, "interval", seconds=self._every, name=self._name, max_instances=1, coalesce=True,
            misfire_grace_time=None,
        )  # fmt: skip
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take())
                group.create_task(self._watch(job))
        finally:
            job.remove()

    async def _ring(self) -> None:
        self._due = True
        self._rung.set()

    async def _take(self) -> None:
        self._rung.set()
        while True:
            await self._rung.wait()
            self._rung.clear()
            extra, self._due = not self._due, False
            began = self._world.clock.now()
            await self._reading(extra=extra)
            if self._world.clock.standstill.ended_at > began:
                self._due = True  # it was interrupted, and is taken again
                self._rung.set()
                continue
            self._taken_at = self._world.clock.monotonic()
            if self._not_before is not None and began >= self._not_before:
                self._not_before = None
            if self._not_before is not None:
                self._rung.set()
            elif not self._due:
                self._rung.clear()

    async def _watch(self, job: Any) -> None:
        while True:
            await self._world.clock.sleep(self._every)
            if not self.alive:
                log.warning("readings have stopped, starting them again", extra={"source": self._name})
                self._taken_at = self._world.clock.monotonic()
                job.reschedule("interval", seconds=self._every)
