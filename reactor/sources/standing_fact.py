"""A fact that a source repeats while it is true: dated when it was last known to be so, never when it is said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Generic, TypeVar

from bus.messages import Message, Observation

LONG_AGO = datetime.min.replace(tzinfo=UTC)
LEAST_STALE_SECONDS = 0.001  # an observation that is stale at once is none

Said = TypeVar("Said", bound=Message)


@dataclass(slots=True)
class StandingFact(Generic[Said]):
    """Newest fact of a source under one key, and when it is due again."""

    key: str
    fact: Said
    since: datetime  # from when on each look has found it so
    seen_at: datetime  # when it was last found to be so
    due_at: float = 0  # on the clock's monotonic time; 0: owed, the bus has not taken it yet
    once: bool = False  # forgotten as soon as it is told
    telling: bool = False
    told_at: float = -inf  # when it was last told, or is being told, on the clock's monotonic time
    told_of: datetime = LONG_AGO  # as of when
    known_until: datetime = LONG_AGO  # to be told: until when the source knows it to be so, beyond what was found
    proven_until: datetime = LONG_AGO  # the same, as far as it can prove it


def dated(entry: StandingFact[Said]) -> Said:
    """The fact as it was last seen, with the times up to which it is known and proven."""
    proven = max(entry.seen_at, entry.proven_until)
    observed_at = max(proven, entry.known_until)
    dates: dict[str, Any] = {"observed_at": observed_at}
    if isinstance(entry.fact, Observation):
        dates["since"] = entry.since
        if proven < observed_at:
            dates["valid_seconds"] = (proven - observed_at).total_seconds()
    return entry.fact.model_copy(update=dates)


def doubtful(entry: StandingFact[Said]) -> Said:
    """The fact as it was last seen, dated just after that: it goes stale when it would have, and proves no more.

    Not dated now: the look that ends the doubt may have begun a moment ago, and what it saw is newer.
    """
    if not isinstance(entry.fact, Observation):
        return entry.fact
    observed_at = max(entry.seen_at, entry.proven_until, entry.known_until) + timedelta(microseconds=1)
    age = (observed_at - entry.seen_at).total_seconds()
    stale = entry.fact.stale_seconds
    return entry.fact.model_copy(
        update={
            "observed_at": observed_at, "since": entry.since, "valid_seconds": -age, "doubted": True,
            "stale_seconds": None if stale is None else max(stale - age, LEAST_STALE_SECONDS),
        }
    )  # fmt: skip
