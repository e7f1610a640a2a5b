"""Windows by cron: whether one is open. Computed from a moment that is given, never from a clock.

Cron is Debian's: 0 and 7 are Sunday, and a day matches by either of its two fields where both are limited. When clocks
go forward, a time of day that does not exist is the moment after the gap; when they go back, it comes once, the first
time. Schedules with `*` or `*/n` for minute or hour follow real time through both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

from rules.rulefile.guards import BlockedWindow


def open_until(window: BlockedWindow, now: datetime) -> datetime | None:
    """Give the end of the window that is open now; None: none is. It is open when begin <= now < begin + duration."""
    # In UTC a duration is real seconds; a zone's own clock would count those that it skips and repeats.
    now, duration = now.astimezone(UTC), timedelta(seconds=window.duration_seconds)
    after = now - duration
    begins = (begin.astimezone(UTC) for begin in CronSim(window.cron, after.astimezone(ZoneInfo(window.timezone))))
    # Where clocks have just gone back, a begin may come out that is not after `after`: it is over.
    first = next((begin for begin in takewhile(lambda begin: begin <= now, begins) if begin > after), None)
    return first + duration if first is not None else None
