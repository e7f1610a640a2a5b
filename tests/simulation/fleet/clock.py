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
        self._read: tuple[float, datetime] = (-1.0, NEW_YEAR)
        """The loop's time when it was last read, and what it showed: it is read several times in one moment."""

    def now(self) -> datetime:
        """The moment by this process's wall clock."""
        at, moment = self._read
        if (now := self._loop.time()) != at:
            moment = NEW_YEAR + timedelta(seconds=now + self._skew)
            self._read = now, moment
        return moment

    def monotonic(self) -> float:
        """Seconds since it began."""
        return self._loop.time() - self._begun


def seconds(moment: datetime) -> float:
    """Give a wall-clock moment on the loop's time."""
    return (moment - NEW_YEAR).total_seconds()
