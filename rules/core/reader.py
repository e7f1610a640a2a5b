"""What the reader of facts knows of its own hearing. Windows depend on it, so it is a part of what is decided from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads the facts that are decided on."""

    listening_since: datetime | None = None
    """Since when it has heard the bus without a break; None: always, as in rehearsals."""
    skew_seconds: float = 0
    """By so much, at most, may the clocks differ by which facts are dated and by which is decided."""

    @property
    def skew(self) -> timedelta:
        """The same, as a timedelta."""
        return timedelta(seconds=self.skew_seconds)

    def asked_until(self, moment: datetime, seconds: float) -> datetime:
        """Give until when it has asked for so long, without a break, for a look that was due at a moment."""
        begun = moment if self.listening_since is None else max(moment, self.listening_since)
        return begun + timedelta(seconds=seconds)


ALWAYS = Reader()
"""A reader that misses nothing and shares one clock with all sources."""
