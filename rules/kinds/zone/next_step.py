"""Desired state of an isolation: its next step, or the reason why there is none."""

from __future__ import annotations

from datetime import datetime, timedelta

from bus.messages import Health, Mode, ZoneStep
from rules.core.desired import DesiredState, Evidence, PlannedAction
from rules.core.member import Member
from rules.core.reasons import Because, Held
from rules.core.timers import first_of
from rules.core.values import replace
from rules.kinds.zone import progress as zone_progress
from rules.kinds.zone.admission import SOURCES_MIN, admit, checks
from rules.kinds.zone.machine import ABORTING, BACK_FAILED, BACK_PENDING, BACK_RUNNING, FAILED, PENDING, RUNNING
from rules.kinds.zone.model import StepName, ZoneIsolation
from rules.kinds.zone.plan import RETRIES_MAX, settings_for
from rules.kinds.zone.record import is_the_rules_own, next_step, next_undo, place_of, zone_seen
from rules.kinds.zone.request import Recovery, agreed_at, bad_zones, limits_of, recovery_of, request_for
from rules.kinds.zone.state import Isolation, ZoneGroup, ZoneState
from rules.kinds.zone.zone_commands import ABORTED
from rules.limits.windows import open_until

BY_A_PERSON = "reactor zone failback brings it back"
CONCURRENCY_KEY = "zone"
AGAIN = timedelta(seconds=30)
"""A guard that refuses is asked again after this, also when nothing was heard."""
REFUSAL_SHOWN = timedelta(seconds=30)
"""Time for which the group shows a refused command as its hold."""
STOP_CONDITIONS = (
    Held.CONTROL_PLANE_UNREACHABLE, Held.ZONES_UNKNOWN, Held.SINGLE_ZONE, Held.WIDESPREAD_FAILURE,
    Held.SINGLE_ZONE_SERVICES, Held.QUORUM_AT_RISK,
)  # fmt: skip
"""Guards that stop a running isolation before its next step: missing data, and parts that must never go with a zone."""


def was_carried_out(rule: ZoneIsolation, isolation: Isolation) -> bool:
    """In mode DryRun: whether this isolation was carried out before. Then there is nothing that could be rehearsed."""
    return rule.mode is Mode.DRY_RUN and bool(isolation.touched) and not isolation.rehearsed


def desire(rule: ZoneIsolation, group: ZoneGroup, _shared_group: ZoneGroup | None, now: datetime) -> DesiredState:
    """Give the step that is to be done now, or why none is."""
    state = group.state
    isolation = state.isolation
    desired = DesiredState() if isolation is None else _next(rule, group, state, isolation, now)
    if isolation is not None and desired.held is not None:
        desired = replace(desired, about=f"{rule.object}/{isolation.zone}")
    elif (other := _not_isolated(rule, group, isolation, now)) is not None:
        desired = replace(
            desired, held=other.held, about=other.about, requeue_at=first_of(desired.requeue_at, now + AGAIN)
        )
    moments = [desired.requeue_at, zone_progress.next_moment(rule, group, state, now)]
    refused = state.refused
    if refused is not None and now < refused.at + REFUSAL_SHOWN:
        held = (Held(refused.reason), refused.detail)
        desired = replace(desired, held=held, about=f"{rule.object}/{refused.zone}")
        moments.append(refused.at + REFUSAL_SHOWN)
    return replace(desired, requeue_at=first_of(*moments))


def _not_isolated(
    rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation | None, now: datetime
) -> DesiredState | None:
    """A zone is bad and is not isolated: say why."""
    left_open = group.state.left_open
    for zone in bad_zones(rule, group):
        if isolation is not None and isolation.zone == zone:
            continue
        if zone in left_open:
            detail = f"{left_open[zone]}: the rule isolates {zone} by itself again once it was well"
            return DesiredState(held=(Held.OVERRIDDEN, detail), about=f"{rule.object}/{zone}")
        answer = admit(request_for(rule, group, zone, now), limits_of(rule))
        if not answer.admit and answer.reason is not None:
            return DesiredState(held=(answer.reason, answer.detail), about=f"{rule.object}/{zone}")
    return None


def _next(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, isolation: Isolation, now: datetime) -> DesiredState:
    if was_carried_out(rule, isolation):
        return DesiredState(held=(Held.ISOLATION_STANDS, f"{isolation.zone} was isolated in another mode than DryRun"))
    place = place_of(isolation)
    if place == PENDING:
        return _start(rule, group, isolation, now)
    if place == RUNNING:
        return _forward(rule, group, isolation, now)
    if place == ABORTING:
        return _again(isolation, _back(rule, isolation, Because.ABORTED))
    if place in (FAILED, BACK_FAILED):
        return DesiredState(held=_failed(isolation))
    if place in (BACK_PENDING, BACK_RUNNING):
        return _again(isolation, _failback(rule, group, isolation, now))
    return _isolated(rule, group, state, isolation, now)


def _failed(isolation: Isolation) -> tuple[Held, str]:
    if not isolation.touched:
        return Held.START_EXPIRED, isolation.failure
    last = isolation.tries > RETRIES_MAX
    return Held.RETRIES_EXHAUSTED if last else Held.STEP_FAILED, isolation.failure


def _again(isolation: Isolation, desired: DesiredState) -> DesiredState:
    """While a failed step is tried again, the hold stays what it was: people are told once, not with every try."""
    if not isolation.failure or desired.held is not None:
        return desired
    return replace(desired, held=(Held.STEP_FAILED, isolation.failure))


def _start(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> DesiredState:
    answer = admit(zone_progress.request_of(rule, group, isolation, now), limits_of(rule))
    if not answer.admit and answer.reason is not None:
        held, recovery = (answer.reason, answer.detail), recovery_of(rule, group, isolation, now)
        if isolation.found:
            held = (Held.ISOLATION_FOUND, f"{isolation.found}; {_returns(rule, isolation, recovery)}")
        elif isolation.touched and is_the_rules_own(isolation):
            # One hold, however often it is bad and healthy in turn: people are told of each that begins.
            held = (Held.HEALTHY_NOW, f"{isolation.zone} was healthy again, so that its isolation waits: {held[1]}")
        proven_at = recovery.at if isolation.touched else None
        return DesiredState(held=held, requeue_at=first_of(now + AGAIN, proven_at))
    follows = bool(isolation.touched) and not isolation.found  # who approved one that was found is not known
    return _while_bad(rule, group, isolation, _do(rule, isolation, follows=follows))


def _returns(rule: ZoneIsolation, isolation: Isolation, recovery: Recovery) -> str:
    """Say what brings a zone back whose isolation was found."""
    names = rule.failback.signals
    if not rule.failback.automatic:
        return f"failback.automatic is false: {BY_A_PERSON}"
    if names is not None and not isolation.witnessed:
        # What they have seen before is lost, and one that is blind to the failure proves nothing.
        return f"none of {', '.join(names)} has called the zone bad since: {BY_A_PERSON}"
    return recovery.detail


def _while_bad(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, desired: DesiredState) -> DesiredState:
    """Give the step with what has to be seen for it: two signals that call the zone bad, or one once a step is done."""
    target = rule.target(isolation.zone)
    member = group.members.get(target)
    if not is_the_rules_own(isolation):
        return desired
    if isolation.done and place_of(isolation) == RUNNING:
        return _still_bad(target, member, desired)
    since = (member.settled_at or member.since) if member is not None else isolation.since
    # The second signal may have agreed for long enough only later.
    agreed = sorted(agreed_at(rule, group.state, isolation.zone).values())
    since = max([since, *agreed[SOURCES_MIN - 1 : SOURCES_MIN]])
    needs = (Evidence(target, healthy=False, since=since, signals=SOURCES_MIN),)
    return replace(desired, acts=tuple(replace(act, needs=needs) for act in desired.acts))


def _still_bad(target: str, member: Member | None, desired: DesiredState) -> DesiredState:
    """Give a later step with a look that shows the zone bad. What no source sees goes on: a zone that is cut off may
    be seen by none."""
    if member is None or member.status is Health.UNKNOWN:
        return desired
    needs = (Evidence(target, healthy=False, since=member.since),)
    return replace(desired, acts=tuple(replace(act, needs=needs) for act in desired.acts))


def _forward(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> DesiredState:
    # An executor may ask before anything was decided for a zone that is proven healthy by now.
    if zone_progress.returns_by_itself(rule, group, isolation, now):
        return DesiredState()
    # One that was called back on its way, as by a pause, is asked for again.
    if isolation.asked_at is None or not any(entry.wanted for entry in group.outbox):
        request = zone_progress.request_of(rule, group, isolation, now)
        for check in checks(request, limits_of(rule)):
            if check.reason in STOP_CONDITIONS and not check.passed:
                return DesiredState(held=(check.reason, check.detail), requeue_at=now + AGAIN)
    return _again(isolation, _while_bad(rule, group, isolation, _do(rule, isolation, follows=True)))


def _do(rule: ZoneIsolation, isolation: Isolation, *, follows: bool) -> DesiredState:
    step = next_step(isolation)
    return DesiredState(acts=(_act(rule, isolation, step, follows=follows),)) if step is not None else DesiredState()


def _back(
    rule: ZoneIsolation, isolation: Isolation, because: str, *, safe: bool = True, detail: str = ""
) -> DesiredState:
    step = next_undo(rule, isolation)
    if step is None:
        return DesiredState()
    return DesiredState(acts=(_act(rule, isolation, step, undo=True, because=because, safe=safe, detail=detail),))


def _failback(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> DesiredState:
    """Each step back waits until the zone is proven healthy; one that is on its way goes on while no signal calls the
    zone bad."""
    because = Because.COMMANDED if isolation.back_by else Because.ZONE_RECOVERED
    if isolation.practice:
        because = Because.PRACTICE
    if isolation.waived:
        because = Because.ABORTED if isolation.waived == ABORTED else because
        return _back(rule, isolation, because, detail="" if isolation.waived == ABORTED else isolation.waived)
    if isolation.asked_at is not None:
        return _back(rule, isolation, because)
    ends = [end for window in rule.failback.blocked_windows if (end := open_until(window, now)) is not None]
    if ends:
        detail = f"failback.blockedWindows: until {max(ends).isoformat()}"
        return DesiredState(held=(Held.IN_BLOCKED_WINDOW, detail), requeue_at=max(ends))
    recovery = recovery_of(rule, group, isolation, now)
    if not recovery.proven:
        held = (Held.BACKING_OFF if recovery.backs_off else Held.ZONE_NOT_RECOVERED, recovery.detail)
        if isolation.found:
            held = (Held.ISOLATION_FOUND, f"{isolation.found}; {recovery.detail}")
        return DesiredState(held=held, requeue_at=recovery.at)
    safe = isolation.status != "Pending" or bool(isolation.back_by)  # nothing blocks a person's command
    desired = _back(rule, isolation, because, safe=safe, detail=recovery.detail)
    if isolation.back_by or isolation.practice or recovery.since is None:
        return desired
    target, names = rule.target(isolation.zone), rule.failback.signals
    needs = (
        Evidence(target, healthy=True, since=recovery.since, signals=len(names) if names else SOURCES_MIN, names=names),
    )
    return replace(desired, acts=tuple(replace(act, needs=needs) for act in desired.acts))


def _isolated(
    rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, isolation: Isolation, now: datetime
) -> DesiredState:
    """Desired state of a complete isolation: nodes that join are fenced too, and all of it is verified about every
    minute.

    After `expirySeconds` a person has to decide.
    """
    seen = zone_seen(state, isolation.zone)
    acts: tuple[PlannedAction, ...] = ()
    if seen is not None and isolation.nodes is not None and seen.nodes > isolation.nodes:
        acts = (_act(rule, isolation, StepName.FENCE, because=Because.NODES_JOINED, follows=True),)
    elif isolation.look_at is not None and now >= isolation.look_at:
        acts = (_act(rule, isolation, StepName.VERIFY, follows=True),)
    expires = isolation.since + timedelta(seconds=rule.expiry_seconds)
    if now < expires:
        look_at, recovery = None if acts else isolation.look_at, recovery_of(rule, group, isolation, now)
        held = (Held.BACKING_OFF, recovery.detail) if recovery.backs_off else None
        if isolation.found:  # a person's: the rule does not open it
            held = (Held.ISOLATION_FOUND, f"{isolation.found}; {BY_A_PERSON}")
        return DesiredState(acts=acts, held=held, requeue_at=first_of(expires, look_at, recovery.at))
    detail = f"isolated since {isolation.since.isoformat()}; expirySeconds is {rule.expiry_seconds:g}"
    return DesiredState(acts=acts, held=(Held.ISOLATION_EXPIRED, detail))


def _act(
    rule: ZoneIsolation, isolation: Isolation, step: str, *, undo: bool = False, because: str = "", safe: bool = False,
    follows: bool = False, detail: str = "",
) -> PlannedAction:  # fmt: skip
    known = rule.zone(isolation.zone)
    status = "InProgress" if isolation.status == "Pending" else isolation.status
    fields = {
        "cluster": rule.cluster_name, "zone": isolation.zone,
        "zone_id": (known.id or "") if known else isolation.zone_id,
        "carrier": rule.carrier, "phase": isolation.phase, "status": status, "step": str(step), "undo": undo,
        "settings": settings_for(
            rule, isolation.zone, step, undo=undo, mode=isolation.mode, steps=isolation.steps,
            targets=isolation.targets, unproven=bool(isolation.waived) or isolation.status == "Aborting",
            by=isolation.by, practice=isolation.practice,
        ),
    }  # fmt: skip
    why = f"{isolation.by}: {isolation.reason}" if isolation.by and isolation.phase == "Failover" else ""
    return PlannedAction(
        ZoneStep, fields, because=because or isolation.because, detail=detail or why, concurrency_key=CONCURRENCY_KEY,
        object=f"{rule.object}/{isolation.zone}", safe=safe, follows=follows,
        by_hand=bool(isolation.back_by if undo else isolation.by),
    )  # fmt: skip
