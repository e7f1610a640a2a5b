"""Time as one simulated process sees it: its wall clock is a little off, and its monotonic clock began anywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reactor.runtime.clock import Clock
from tests.simulation.fleet.loop import VirtualLoop

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


class SimClock(Clock):
    """`skew` and `begun` are seconds."""

    def __init__(self, loop: VirtualLoop, *, skew: float = 0.0, begun: float = 0.0) -> None:
        self._loop = loop
        self._skew = skew
        self._begun = begun

    def now(self) -> datetime:
        """The moment by this process's wall clock."""
        return NEW_YEAR + timedelta(seconds=self._loop.time() + self._skew)

    def monotonic(self) -> float:
        """Seconds since it began."""
        return self._loop.time() - self._begun


def seconds(moment: datetime) -> float:
    """Give a wall-clock moment on the loop's time."""
    return (moment - NEW_YEAR).total_seconds()
