"""Clocks of what is bad: they wait while health is Unknown, and stop only when it has been good for long enough.

A restart forgets nothing: all times are stored. A late look, or one at several changes at once, may see a clock
begin again, and never one that runs ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.core.values import replace

NO_TIME = timedelta()


def first_of(*moments: datetime | None) -> datetime | None:
    """The earliest of those that are set; None where none is."""
    return min((moment for moment in moments if moment is not None), default=None)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Stopwatch of continuous badness: paused while the status is Unknown or recovering."""

    since: datetime
    """Start, moved on by the time for which it was paused."""
    seen: datetime
    """Start of the bad status during which it runs."""
    waiting_since: datetime | None = None
    healthy_since: datetime | None = None
    """Start of the current recovery, shorter than recoverySeconds so far; None: not healthy."""


def advanced(
    clock: Stopwatch | None, is_bad: bool | None, since: datetime, now: datetime, recovery: timedelta, *,
    dated: bool = False,
) -> Stopwatch | None:  # fmt: skip
    """Give the clock of something that has been bad, or good, since then; None as status: not known.

    No clock: there is nothing to time. It ends when it has been good for as long as `recovery`. `dated`: `since` is
    from when on a source has seen it bad without a break, which may be before it was not known.
    """
    if clock is not None and clock.healthy_since is not None:
        until = now if is_bad is False else since
        if until >= clock.healthy_since + recovery:
            clock = None
    if is_bad:
        if dated and clock is not None and clock.waiting_since is not None and clock.healthy_since is None:
            # It may have been good while it was not known, unless it has been seen bad since before.
            return Stopwatch(since, since) if since > clock.seen else _running(clock, since)
        return _running(clock, since)
    if clock is None or (is_bad is False and now >= since + recovery):
        return None
    healthy_since = None if is_bad is None else clock.healthy_since or since
    return replace(clock, waiting_since=clock.waiting_since or max(since, clock.since), healthy_since=healthy_since)


def _running(clock: Stopwatch | None, since: datetime) -> Stopwatch:
    if clock is not None and clock.waiting_since is not None:
        return Stopwatch(clock.since + max(since - clock.waiting_since, NO_TIME), since)
    if clock is not None and clock.seen == since:
        return clock
    # It has left this status and come back, and what was between was not observed.
    return Stopwatch(since, since)


def runs(clock: Stopwatch | None) -> bool:
    """True if the clock is running: not None and not paused."""
    return clock is not None and clock.waiting_since is None
