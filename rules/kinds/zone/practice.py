"""Drills by schedule: when one may start, what ends it, and its result. The rules are those of AWS' zonal shift.

One shift is in effect at a time, and a person comes before the rule, the rule before a practice run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from cronsim import CronSim

from bus.messages import Health
from rules.kinds.zone.model import Practice, ZoneIsolation
from rules.kinds.zone.state import ZoneGroup
from rules.limits.windows import open_until
from rules.rulefile.targets import matches

RUN = timedelta(minutes=30)
"""Length of a practice run of ARC."""


class ZoneShift(StrEnum):
    """Kind of zonal shift, by its cause."""

    BY_HAND = "ZONAL_SHIFT"
    AUTOMATIC = "ZONAL_AUTOSHIFT"
    PRACTICE = "PRACTICE_RUN"


class Applied(StrEnum):
    """Effect of starting a shift: on it, and on the one in effect."""

    APPLIED = "APPLIED"
    NOT_APPLIED = "NOT_APPLIED"
    """It is kept, and takes effect when the other one is over."""
    INTERRUPTED = "INTERRUPTED"
    REFUSED = "REFUSED"


class Blocked(StrEnum):
    """Reason why a practice run does not start."""

    IN_BLOCKED_WINDOWS = "PracticeInBlockedWindows"
    BLOCKING_ALARMS = "PracticeBlockingAlarmsRed"
    SHIFT_ACTIVE = "ZonalAutoshiftActive"
    """Another shift is in effect; by hand it is SHIFT_BY_HAND."""
    SHIFT_BY_HAND = "ZonalShiftAlreadyExists"
    CAPACITY = "CAPACITY_CHECK_FAILED"


class RunOutcome(StrEnum):
    """The result of a practice run."""

    PENDING = "PENDING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"
    CAPACITY = "CAPACITY_CHECK_FAILED"


def precedence(active: ZoneShift | None, start: ZoneShift) -> tuple[Applied, Applied | None]:
    """Give what becomes of a shift that starts, and of the one that is in effect."""
    if active is None:
        return Applied.APPLIED, None
    if active is start:
        return Applied.REFUSED, Applied.APPLIED
    rank = list(ZoneShift)
    if rank.index(start) < rank.index(active):
        return Applied.APPLIED, Applied.INTERRUPTED if active is ZoneShift.PRACTICE else Applied.NOT_APPLIED
    return Applied.REFUSED if start is ZoneShift.PRACTICE else Applied.NOT_APPLIED, Applied.APPLIED


def practice_start(
    *, window_blocked: bool, blocking_alarm: bool, active: ZoneShift | None, capacity: bool
) -> Blocked | None:
    """Reason why a practice run must not start now; None: it may. The first that applies is given."""
    if window_blocked:
        return Blocked.IN_BLOCKED_WINDOWS
    if blocking_alarm:
        return Blocked.BLOCKING_ALARMS
    if precedence(active, ZoneShift.PRACTICE)[0] is not Applied.APPLIED:
        return Blocked.SHIFT_BY_HAND if active is ZoneShift.BY_HAND else Blocked.SHIFT_ACTIVE
    return None if capacity else Blocked.CAPACITY


def practice_outcome(ran: timedelta, *, outcome_alarm: bool, interrupted: bool, lasts: timedelta = RUN) -> RunOutcome:
    """The result of a run that has lasted so long. An alarm ends it; so does a shift that matters more."""
    if outcome_alarm:
        return RunOutcome.FAILED
    if interrupted:
        return RunOutcome.INTERRUPTED
    return RunOutcome.SUCCEEDED if ran >= lasts else RunOutcome.PENDING


def run_at(practice: Practice, now: datetime) -> datetime | None:
    """Start of the run that should be in progress now; None: there is none."""
    end = open_until(practice, now)
    return end - timedelta(seconds=practice.duration_seconds) if end is not None else None


def next_run(practice: Practice, now: datetime) -> datetime | None:
    """Start of the next run; None: there is none (the 30th of February)."""
    begin = next(CronSim(practice.cron, now.astimezone(ZoneInfo(practice.timezone))), None)
    return begin.astimezone(UTC) if begin is not None else None


def turn_of(rule: ZoneIsolation, practice: Practice, begin: datetime) -> str:
    """Zone whose turn it is: the zones in their order, one a week, so that a restart changes nothing."""
    zones: Sequence[str] = practice.zones or [zone.name for zone in rule.zones]
    return zones[begin.toordinal() // 7 % len(zones)]


def stopped_by(practice: Practice, group: ZoneGroup) -> str | None:
    """The first stop signal that is not Healthy, in words; None: all are. One that nothing has observed is not."""
    for pattern in practice.stop_signals:
        said = {target: member.status for target, member in group.members.items() if matches(pattern, target)}
        bad = next((f"{target} is {status}" for target, status in said.items() if status is not Health.HEALTHY), None)
        if bad is not None or not said:
            return bad or f"{pattern} has no observation"
    return None
