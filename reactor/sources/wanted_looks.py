"""Pending requests for looks of a source: several may ask for the same target, each for a look from another moment on.

A look answers every question for its moment or an earlier one. Kept only for the newest question, an answer would not
come while others keep asking within less time than a look takes, as routes that share a secondary do when they fail one
after the other.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta


class WantedLooks:
    """The looks that one source is asked for, by key."""

    def __init__(self) -> None:
        self._moments: dict[str, tuple[datetime, datetime]] = {}
        """The earliest and the latest moment that is asked for and was not seen yet."""

    @property
    def keys(self) -> Set[str]:
        """Keys for which a look is pending."""
        return self._moments.keys()

    def ask(self, key: str, not_before: datetime) -> None:
        """Want a look that begins at this moment or later."""
        first, last = self._moments.get(key, (not_before, not_before))
        self._moments[key] = min(first, not_before), max(last, not_before)

    def moment(self, key: str) -> datetime | None:
        """Give the latest moment that is asked for; None: there is none."""
        return self._moments[key][1] if key in self._moments else None

    def answered(self, key: str, seen_at: datetime) -> datetime | None:
        """Give the latest moment that was asked for and is seen by this look, and forget it; None: there is none."""
        first, last = self._moments.get(key, (None, None))
        if first is None or last is None or seen_at < first:
            return None
        if seen_at >= last:
            del self._moments[key]
            return last
        self._moments[key] = seen_at + timedelta.resolution, last
        return seen_at

    def forget(self, key: str) -> None:
        """Drop what was asked about it."""
        self._moments.pop(key, None)
