"""A clock for tests."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from reactor.runtime.clock import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)


class HandClock(Clock):
    """A clock that stands where it is put; whoever sleeps lets it jump there."""

    def __init__(self, seconds: float = 0.0, *, start: datetime = START) -> None:
        self.seconds = seconds
        """Since the start."""
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.seconds += max(0.0, seconds)
