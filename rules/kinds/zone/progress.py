"""Changes of an isolation with time: a start, timeouts, tries, the return, drills. Each at its own moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bus.messages import Health
from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.zone.admission import admit
from rules.kinds.zone.drills import drilled, next_drill
from rules.kinds.zone.machine import (
    ABORTING,
    BACK_FAILED,
    BACK_PENDING,
    BACK_RUNNING,
    FAILED,
    ISOLATED,
    PENDING,
    RUNNING,
    Extent,
    IsolationEvent,
)
from rules.kinds.zone.model import OnExpiry, ZoneIsolation
from rules.kinds.zone.plan import retry_after, seconds_for
from rules.kinds.zone.question import AdmissionRequest
from rules.kinds.zone.record import (
    apply,
    begun,
    extent,
    is_the_rules_own,
    next_step,
    next_undo,
    place_of,
    promote_drill,
    updated_record,
)
from rules.kinds.zone.request import agreed_at, bad_zones, counting, dissent_on, limits_of, recovery_of, request_for
from rules.kinds.zone.state import Isolation, ZoneGroup, ZoneState
from rules.kinds.zone.zone_commands import over
from rules.limits.backoff import FAILURES_MAX

PENDING_MAX = timedelta(minutes=15)
"""Time for which a start that a person has asked for waits for its guards."""
ROUNDS_MAX = 100


@dataclass(frozen=True, slots=True)
class Timer:
    """Change of the record at a moment, if nothing else changes it before."""

    at: datetime
    event: IsolationEvent
    changes: dict[str, Any] = field(default_factory=dict)


def passed(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """Give the state as time has made it. Timers run out in their order, also when they are looked at late."""
    if not _stopped(group, state.isolation):
        for _ in range(ROUNDS_MAX):
            due = min(timers(rule, group, state), key=lambda timer: timer.at, default=None)
            if due is None or due.at > now:
                break
            # A try begins with a look: its time must not be over before anything is asked.
            when = now if due.event is IsolationEvent.RETRY else due.at
            state = apply(rule, state, due.event, when, **due.changes)
    state = drilled(rule, group, _well_again(rule, group, state), now)
    state = _started(rule, group, state, now)
    state = _watched(rule, group, state, now)
    return _returned(rule, group, state, now)


def next_moment(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> datetime | None:
    """Next time at which time alone changes something; None: none."""
    running = () if _stopped(group, state.isolation) else timers(rule, group, state)
    moments = [timer.at for timer in running if timer.at > now]
    if state.isolation is not None and state.isolation.asked_at is None:
        # The step may be asked for in this very moment: its time runs from now.
        forward = place_of(state.isolation) in (PENDING, RUNNING)
        step = next_step(state.isolation) if forward else next_undo(rule, state.isolation)
        if step is not None:
            moments.append(now + timedelta(seconds=seconds_for(rule, step, undo=not forward)))
    moments += [at for at in (next_drill(rule, state, now),) if at is not None]
    moments += [at for zone in bad_zones(rule, group) for at in agreed_at(rule, state, zone).values() if at > now]
    return min(moments, default=None)


def _stopped(group: ZoneGroup, isolation: Isolation | None) -> bool:
    """True if a pause stops all clocks. It does not stop a return that a person has asked for."""
    return group.paused is not None and not (isolation is not None and isolation.back_by)


def timers(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState) -> Iterator[Timer]:
    """Give all that is running."""
    isolation = state.isolation
    if isolation is None:
        return
    place = place_of(isolation)
    went_on = [at for at in (group.commanded_at, group.pause_ended_at) if at is not None]
    since = max([isolation.since, *went_on])  # a pause stops all clocks
    if place == PENDING and isolation.by:
        detail = f"the guards did not let it start within {PENDING_MAX.total_seconds():g} s"
        yield Timer(since + PENDING_MAX, IsolationEvent.DEADLINE, {"failure": detail, "tries": 0})
    if place in (RUNNING, ABORTING, BACK_RUNNING) and isolation.asked_at is not None:
        yield _step_timer(rule, isolation, max(since, isolation.asked_at), undo=place != RUNNING)
    if place in (FAILED, BACK_FAILED) and (wait := retry_after(isolation.tries)) is not None:
        yield Timer(since + wait, IsolationEvent.RETRY)
    if place == ISOLATED and rule.on_expiry is OnExpiry.FAILBACK:
        yield Timer(since + timedelta(seconds=rule.expiry_seconds), IsolationEvent.EXPIRY_FAILBACK)


def _step_timer(rule: ZoneIsolation, isolation: Isolation, asked_at: datetime, *, undo: bool) -> Timer:
    step = (next_undo(rule, isolation) if undo else next_step(isolation)) or ""
    step_seconds = seconds_for(rule, step, undo=undo)
    failure = f"{'undoing ' if undo else ''}{step} was not done within {step_seconds:g} s"
    if isolation.trouble:
        failure += f": {isolation.trouble}"
    event = IsolationEvent.UNDO_TIMEOUT if undo else IsolationEvent.STEP_TIMEOUT
    return Timer(asked_at + timedelta(seconds=step_seconds), event, {"failure": failure, "tries": isolation.tries + 1})


def request_of(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> AdmissionRequest:
    """The question whether this isolation may start, or start again."""
    by_hand = bool(isolation.by) or isolation.practice
    return request_for(
        rule, group, isolation.zone, now, by_hand=by_hand, force=isolation.force, allowed=isolation.allowed
    )


def _well_again(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState) -> ZoneState:
    """A zone that a person has brought back is the rule's again once it was well."""
    well = {
        zone
        for zone in state.left_open
        if (member := group.members.get(rule.target(zone))) is not None
        and (member.settled, member.status) == (True, Health.HEALTHY)
    }
    if not well:
        return state
    return replace(state, left_open={zone: words for zone, words in state.left_open.items() if zone not in well})


def _started(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """One zone alone has been bad for its toleration, and everything speaks for it: a record is opened."""
    isolation = state.isolation
    group = replace(group, state=state)
    if isolation is None or over(rule, isolation):
        first = next((zone for zone in bad_zones(rule, group) if zone not in state.left_open), None)
        if first is not None and admit(request_for(rule, group, first, now), limits_of(rule)).admit:
            return begun(rule, state, first, now, because=Because.ZONE_UNHEALTHY)
        return state
    if place_of(isolation) != PENDING:
        return state
    admitted = admit(request_of(rule, group, isolation, now), limits_of(rule)).admit
    nothing = extent(rule, isolation) is Extent.NOTHING
    if not isolation.by and nothing and not admitted:
        return apply(rule, state, IsolationEvent.REMOVED, now)  # the rule itself wanted it, and no longer does
    called_off = bool(isolation.touched) and is_the_rules_own(isolation) and not isolation.found
    if admitted and (called_off or next_step(isolation) is None):
        # From now on: an action in flight was asked for before it was called off. With no step left, it
        # is a failback that was called off before it began.
        return apply(rule, state, IsolationEvent.GUARDS_PASS, now)
    return state


def _watched(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """Remember since when the signals that may open the zone all call it healthy, and whether they saw it bad.

    What they did not see without a break, as no source looked, was maybe bad: that counts from its end.
    """
    isolation, names = state.isolation, rule.failback.signals
    if isolation is None or names is None:
        return state
    member = group.members.get(rule.target(isolation.zone))
    since = None
    if member is not None and dissent_on(rule, member) is None:
        since = max([isolation.recovered_since or now, *(member.signals[name].begun for name in names)])
    witnessed = isolation.witnessed or Health.UNHEALTHY in counting(names, member).values()
    if (since, witnessed) == (isolation.recovered_since, isolation.witnessed):
        return state
    return updated_record(state, recovered_since=since, witnessed=witnessed)


def _returned(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """The way back begins when the zone is proven healthy; a zone that dies on its way back is isolated again."""
    isolation = state.isolation
    if isolation is None or _stopped(group, isolation):
        return state
    group = replace(group, state=state)
    place = place_of(isolation)
    if group.paused is None and _died(rule, group, isolation, now):
        if isolation.practice:
            return promote_drill(rule, state, isolation, now, because=Because.ZONE_UNHEALTHY)
        fresh = {"by": "", "reason": "", "force": False, "back_by": "", "waived": ""}
        fresh["because"] = Because.ZONE_UNHEALTHY.value
        failures = min(isolation.failures + 1, FAILURES_MAX)
        return apply(rule, state, IsolationEvent.SAME_ADDED, now, failures=failures, **fresh)
    goes_on = place == RUNNING or (place == FAILED and not isolation.undoing)
    if goes_on and is_the_rules_own(isolation) and is_well(rule, group, isolation):
        return apply(rule, state, IsolationEvent.CALLED_OFF, now)
    if place == BACK_RUNNING and _is_bad_again(rule, group, isolation):
        return apply(rule, state, IsolationEvent.CALLED_OFF, now)
    if place in (ISOLATED, PENDING, RUNNING) and returns_by_itself(rule, group, isolation, now):
        event = IsolationEvent.PROVEN_WELL if place == RUNNING else IsolationEvent.REMOVED
        return apply(rule, state, event, now)
    if place == BACK_PENDING and extent(rule, isolation) is Extent.NOTHING:
        return apply(
            rule, state, IsolationEvent.GUARDS_PASS, now
        )  # nothing was left behind, so there is nothing to wait for
    return state


def returns_by_itself(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> bool:
    """True if the rule may bring the zone back, and it is proven healthy."""
    mine = not isolation.by and not isolation.practice and rule.failback.automatic
    mine = mine and (rule.failback.signals is None or isolation.witnessed)
    return mine and recovery_of(rule, group, isolation, now).proven


def is_well(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation) -> bool:
    """True if the signals report the zone Healthy now, for however short a time."""
    member = group.members.get(rule.target(isolation.zone))
    return member is not None and member.status is Health.HEALTHY


def _is_bad_again(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation) -> bool:
    """True if a signal that has to prove the zone healthy calls it bad now. A person who wants it open is not asked."""
    if isolation.back_by or isolation.waived:
        return False
    said = counting(rule.failback.signals or rule.signals, group.members.get(rule.target(isolation.zone)))
    return Health.UNHEALTHY in said.values()


def _died(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> bool:
    """True if a zone that is on its way back, or only drilled, is really bad. It is no other zone's turn then."""
    half_open = extent(rule, isolation) is Extent.SOME and not isolation.back_by
    coming_back = place_of(isolation) in (BACK_RUNNING, BACK_FAILED)
    coming_back = coming_back or (place_of(isolation) == BACK_PENDING and half_open)
    drilled_only = isolation.practice and place_of(isolation) in (RUNNING, ISOLATED)
    if not (coming_back or drilled_only) or isolation.zone not in bad_zones(rule, group):
        return False
    if isolation.waived or isolation.zone in group.state.left_open:
        return False  # a person wants it open, and knows how it is
    member = group.members.get(rule.target(isolation.zone))
    if coming_back and rule.failback.signals is not None and member is not None and dissent_on(rule, member) is None:
        return False  # its own nodes need their time; those that opened it still say so
    return admit(replace(request_for(rule, group, isolation.zone, now), isolated=()), limits_of(rule)).admit
