"""The only file that reads time.

`now` is the wall clock of this process's start plus the time since, the time in which the machine was suspended
included: a wall-clock jump while we run neither fires nor delays a window, and after a suspension what others did
meanwhile is as old as it is. A wall clock that is wrong at the start is set right by the bus (docs/decisions/0012).
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from functools import cached_property

from reactor.runtime.standstill import Standstill

DRIFT = 0.001
"""Seconds per second by which this clock and the bus's may part between two measurements: NTP may slew both, each by at
most 500 ppm."""
_RUNNING: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time in which the machine was suspended, where the system has such a clock."""


class Clock:
    """Time as this process sees it."""

    _wrong_by = timedelta(0)
    _apart: tuple[float, float, float] | None = None
    """The least and the most by which the bus's clock may be ahead of ours, in seconds, and when that was measured."""

    def __init__(self, *, wrong_by: timedelta = timedelta(0)) -> None:
        """`wrong_by`: for tests: how far ahead this machine's wall clock is."""
        self._wall = datetime.fromtimestamp(time.time(), UTC) + wrong_by  # noqa: TID251 - the one place where it is read
        self._monotonic = _running()
        self._wrong_by = wrong_by

    def align(self, ahead: timedelta) -> None:
        """Go by a clock that is so far ahead of ours. Only before anything was decided by ours: time jumps here."""
        self._wall += ahead
        self._apart = None

    def now(self) -> datetime:
        """The moment, aware, in UTC. Never goes back, never jumps."""
        return self._wall + timedelta(seconds=_running() - self._monotonic)

    def monotonic(self) -> float:
        """Seconds from some point in the past: for measuring durations. Goes on while the machine is suspended."""
        return _running()

    def machine(self) -> datetime:
        """Time of the machine's wall clock: it may be wrong, and may jump."""
        return datetime.fromtimestamp(time.time(), UTC) + self._wrong_by  # noqa: TID251 - for a metric and a warning only

    def measured(self, ahead: timedelta, doubt: timedelta) -> None:
        """Note how far the bus's clock is ahead of `now`, and how wrong that may be: half the round trip."""
        low, high = (ahead - doubt).total_seconds(), (ahead + doubt).total_seconds()
        if self._apart is not None:
            known_low, known_high = self._span()
            if low <= known_high and known_low <= high:  # else a clock has jumped, and only the newest counts
                low, high = max(low, known_low), min(high, known_high)
        self._apart = low, high, self.monotonic()

    @property
    def skew_seconds(self) -> float:
        """The most by which this clock may differ from the bus's now, in seconds; 0.0 before the first measurement.

        Two processes on one bus differ by at most the sum of theirs.
        """
        return max(map(abs, self._span()))

    def _span(self) -> tuple[float, float]:
        if self._apart is None:
            return 0.0, 0.0
        low, high, at = self._apart
        drift = DRIFT * (self.monotonic() - at)
        return low - drift, high + drift

    @cached_property
    def standstill(self) -> Standstill:
        """Standstills of this process; noticed while its `run` runs."""
        return Standstill(self.now)

    async def sleep(self, seconds: float) -> None:
        """Let this many seconds pass."""
        await asyncio.sleep(max(0.0, seconds))


def _running() -> float:
    return time.clock_gettime(_RUNNING)
