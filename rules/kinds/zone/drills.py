"""Practice runs: started by schedule, ended by time, by a stop signal, or by something that matters more."""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.zone.admission import admit
from rules.kinds.zone.machine import BACK_FAILED, BACK_PENDING, BACK_RUNNING, NONE, IsolationEvent
from rules.kinds.zone.model import Practice, ZoneIsolation
from rules.kinds.zone.practice import (
    Blocked,
    RunOutcome,
    ZoneShift,
    next_run,
    practice_outcome,
    practice_start,
    run_at,
    stopped_by,
    turn_of,
)
from rules.kinds.zone.record import apply, begun, place_of
from rules.kinds.zone.request import bad_zones, limits_of, request_for
from rules.kinds.zone.state import Isolation, RefusedZoneCommand, ZoneGroup, ZoneState
from rules.limits.windows import open_until


def next_drill(rule: ZoneIsolation, state: ZoneState, now: datetime) -> datetime | None:
    """Time of the next change by the schedule: a run begins, or the current one ends; None: none."""
    if rule.practice is None:
        return None
    isolation = state.isolation
    if isolation is not None and isolation.practice and place_of(isolation) not in _GOING_BACK:
        return _ends(rule.practice, isolation)
    return next_run(rule.practice, now)


_GOING_BACK = (BACK_PENDING, BACK_RUNNING, BACK_FAILED)


def _ends(practice: Practice, drill: Isolation) -> datetime:
    return drill.began_at + timedelta(seconds=practice.duration_seconds)


def drilled(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """Give the state after what the practice schedule wants now."""
    isolation = state.isolation
    if isolation is not None and isolation.practice:
        return _over(rule, group, state, isolation, now)
    practice = rule.practice
    begin = run_at(practice, now) if practice is not None else None
    if practice is None or begin is None or (state.practised_at is not None and begin <= state.practised_at):
        return state
    state = replace(state, practised_at=begin)
    zone = turn_of(rule, practice, begin)
    blocked, detail = _blocked(rule, practice, group, state, zone, now)
    if blocked is None:
        state = replace(state, practice_outcome=RunOutcome.PENDING.value)
        return begun(rule, state, zone, now, because=Because.PRACTICE, practice=True)
    refused = RefusedZoneCommand(zone, Held.PRACTICE_BLOCKED.value, f"{blocked}: {detail}", now)
    outcome = RunOutcome.CAPACITY.value if blocked is Blocked.CAPACITY else state.practice_outcome
    return replace(state, refused=refused, practice_outcome=outcome)


def _blocked(
    rule: ZoneIsolation, practice: Practice, group: ZoneGroup, state: ZoneState, zone: str, now: datetime
) -> tuple[Blocked | None, str]:
    """Reason why no run starts now, in a word and in a sentence. Capacity is checked with the whole admission: a drill
    may start only where an isolation may."""
    window = next((one for one in practice.blocked_windows if open_until(one, now) is not None), None)
    alarm = stopped_by(practice, group) or next(iter(f"{bad} is bad" for bad in bad_zones(rule, group)), None)
    busy = state.isolation
    answer = admit(request_for(rule, replace(group, state=state), zone, now, by_hand=True), limits_of(rule))
    active = None if busy is None else ZoneShift.BY_HAND if busy.by else ZoneShift.AUTOMATIC
    blocked = practice_start(
        window_blocked=window is not None, blocking_alarm=alarm is not None, active=active,
        capacity=answer.admit,
    )  # fmt: skip
    if blocked is Blocked.IN_BLOCKED_WINDOWS and window is not None:
        return blocked, f"{window.cron} ({window.timezone})"
    if blocked is Blocked.BLOCKING_ALARMS:
        return blocked, alarm or ""
    if blocked is Blocked.CAPACITY:
        return blocked, f"{answer.reason}: {answer.detail}"
    return blocked, f"{busy.zone} is isolated or on its way" if busy is not None else ""


def _over(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, drill: Isolation, now: datetime) -> ZoneState:
    """End a run whose time is over, that a stop signal ends, or that blocks a real isolation."""
    if place_of(drill) in (NONE, *_GOING_BACK) or rule.practice is None:
        return state
    stop = stopped_by(rule.practice, group)
    interrupted = any(zone != drill.zone for zone in bad_zones(rule, group))
    lasts = timedelta(seconds=rule.practice.duration_seconds)
    ran = now - drill.began_at
    outcome = practice_outcome(ran, outcome_alarm=stop is not None, interrupted=interrupted, lasts=lasts)
    if outcome is RunOutcome.PENDING:
        return state
    return apply(rule, replace(state, practice_outcome=outcome.value), IsolationEvent.REMOVED, now)
