"""A token bucket for each source: how fast its alerts go into the journal. Pure: time is an argument.

Windows wait for all that is in the inbox, and routers take what is there in turn: a flood of one source would hold up
every rule. Beyond the bucket, that source's posts wait in the receiver, unanswered.
"""

from __future__ import annotations


class TokenBucket:
    """One source's: it holds so many tokens, one for an alert, and fills with so many a second."""

    def __init__(self, per_second: int, at_once: int, now: float) -> None:
        """`now`: seconds on any clock that goes evenly."""
        self._per_second = per_second
        self._at_once = at_once
        self._room = float(at_once)
        self._at = now

    def owed(self, now: float) -> float:
        """Give after how many seconds those that were taken out are paid for."""
        return max(-self._filled(now) / self._per_second, 0.0)

    def take(self, alerts: int, now: float) -> float:
        """Take so many out, and give after how many seconds they may go."""
        self._room, self._at = self._filled(now) - alerts, now
        return self.owed(now)

    def _filled(self, now: float) -> float:
        return min(self._room + (now - self._at) * self._per_second, self._at_once)
