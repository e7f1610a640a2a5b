"""Continuity and clock skew of the process that reads facts. Windows depend on it, so it is part of a
decision's input."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache


@lru_cache(maxsize=64)
def _timedelta(seconds: float) -> timedelta:
    """Asked for twice with each fact."""
    return timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Reader:
    """Process that reads the facts, as far as decisions depend on it."""

    listening_since: datetime | None = None
    """Since when it has heard the bus without a break; None: always, as in rehearsals."""
    skew_seconds: float = 0
    """Largest difference in seconds between the clock that dates facts and the one that decides."""

    @property
    def skew(self) -> timedelta:
        """The same, as a timedelta."""
        return _timedelta(self.skew_seconds)

    def asked_until(self, moment: datetime, seconds: float) -> datetime:
        """Give until when it has asked for so long, without a break, for a look that was due at a moment."""
        begun = moment if self.listening_since is None else max(moment, self.listening_since)
        return begun + timedelta(seconds=seconds)


ALWAYS = Reader()
"""A reader that misses nothing and shares one clock with all sources."""
