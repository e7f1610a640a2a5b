"""Clocks for tests, and virtual time: a busy machine then decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from reactor.runtime.clock import Clock
from tests.simulation.fleet.clock import SimClock
from tests.simulation.fleet.loop import VirtualLoop

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)


class HandClock(Clock):
    """A clock that keeps the time it is set to; a call of `sleep` moves it to the end of the sleep at once."""

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


def on_virtual_time(running: Coroutine[Any, Any, T]) -> T:
    """Run it on a loop whose time jumps to the next timer as soon as nothing is ready. Nothing of it may go on
    afterwards."""
    loop = VirtualLoop()
    try:
        found = loop.run_until_complete(running)
        assert asyncio.all_tasks(loop) == set()
    finally:
        loop.close()
    return found


def virtual_clock() -> SimClock:
    """The clock of what runs on virtual time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return SimClock(loop)
