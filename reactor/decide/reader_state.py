"""Time since which a partition has read the bus without a break: what a window may count on."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from reactor.runtime.clock import Clock
from reactor.runtime.standstill import LAP
from rules.core.reader import Reader

SKEW_STEP = 0.005
"""Seconds: possible clock difference is rounded up to a multiple of this."""


class ReaderState:
    """Breaks in which a partition read nothing: outages of the bus, and standstills of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began = clock.now()
        """Time at which this process took the partition."""
        self._since = self.began
        self._stopped_at = clock.standstill.long_ended_at
        """End of the last long standstill that was looked into."""
        self._overdue: datetime | None = None
        """Time since which windows wait until all input is known."""

    def was_stopped(self, began: float, wait: timedelta) -> bool:
        """True if this process was stopped during a turn that began at `began` (monotonic) and was to take `wait`."""
        stopped_at = self._clock.standstill.long_ended_at
        noticed = stopped_at > self._stopped_at
        self._stopped_at = stopped_at
        return noticed or self._clock.monotonic() - began > wait.total_seconds() + LAP.total_seconds()

    def restart(self) -> None:
        """Count from now: there was a break."""
        self._since = self._clock.now()

    def keeps_up(self) -> None:
        """No window waits for input."""
        self._overdue = None

    def reader(self, alarm: datetime | None) -> Reader:
        """Give what it may count on now. `alarm`: end of the next window. Where windows were not looked at longer than
        LAP, sources were not asked either, and it counts from now."""
        now = self._clock.now()
        if alarm is not None and alarm <= now:
            self._overdue = min(alarm, self._overdue or alarm)
        if self._overdue is not None and now - self._overdue > LAP:
            self._since = now
        # A fact's date may be as far off the bus's clock as ours may be, and to the other side. In whole steps: what
        # follows from a reader that is the same is computed once.
        skew = 2 * self._clock.skew_seconds
        return Reader(self._since, math.ceil(skew / SKEW_STEP) * SKEW_STEP)
