"""Seconds of a rehearsal, and what happens in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bus.messages import Action, Hold

START = datetime(1970, 1, 1, tzinfo=UTC)
"""Second 0 of every rehearsal."""


def at(second: float) -> datetime:
    """The moment of a second."""
    return START + timedelta(seconds=second)


def second(moment: datetime) -> float:
    """The second of a moment."""
    return (moment - START).total_seconds()


@dataclass(frozen=True, slots=True)
class Emitted:
    """One thing that came out: an action that is new, or a hold that begins."""

    at: float
    what: Action | Hold
    because: tuple[str, ...]
