"""The record of an isolation, moved by events: the machine's answer, and what has to be remembered with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.zone.machine import (
    ABORTING,
    BACK_RUNNING,
    FAILED,
    ISOLATED,
    NONE,
    RUNNING,
    Extent,
    IsolationEvent,
    IsolationState,
    Phase,
    Status,
    move,
)
from rules.kinds.zone.model import StepName, ZoneIsolation
from rules.kinds.zone.plan import in_order, leaves_something, mode_of, undo_order
from rules.kinds.zone.state import Isolation, ZoneNodes, ZoneReturn, ZoneState
from rules.limits.backoff import failures_with

FIRST_LOOK = timedelta(minutes=1)
"""After the isolation is complete. All later looks are the same action, which is never done and asked for again."""


def place_of(isolation: Isolation | None) -> IsolationState:
    """Phase and status of an isolation; NONE without one."""
    return NONE if isolation is None else IsolationState(Phase(isolation.phase), Status(isolation.status))


def extent(rule: ZoneIsolation, isolation: Isolation) -> Extent:
    """Part of the isolation that may be in force. Steps that leave nothing to undo do not count."""
    if not any(leaves_something(rule, step) for step in isolation.touched):
        return Extent.NOTHING
    return Extent.ALL if set(isolation.steps) <= set(isolation.done) else Extent.SOME


def next_step(isolation: Isolation) -> str | None:
    """The first step that is not surely done."""
    return next((step for step in isolation.steps if step not in isolation.done), None)


def is_the_rules_own(isolation: Isolation) -> bool:
    """True if the rule itself isolates the zone: each of its steps is right only while the zone is bad."""
    return isolation.phase == "Failover" and not (isolation.by or isolation.practice)


def next_undo(rule: ZoneIsolation, isolation: Isolation) -> str | None:
    """The first step that has to be undone."""
    return next(iter(undo_order(rule, isolation.touched)), None)


def begun(
    rule: ZoneIsolation, state: ZoneState, zone: str, at: datetime, *, because: str, practice: bool = False,
    **asked: Any,
) -> ZoneState:  # fmt: skip
    """Give the state with a new record: step 0 of every plan. Nothing is touched yet."""
    mode, known = mode_of(zone_seen(state, zone), at), rule.zone(zone)
    wanted: Iterable[str] = rule.steps
    if practice and rule.practice is not None:
        wanted = [step for step in rule.steps if step in rule.practice.steps]
    by_itself = because == Because.ZONE_UNHEALTHY and not practice
    isolation = Isolation(
        zone=zone, phase="Failover", status="Pending", because=because, began_at=at, since=at, mode=mode,
        failures=failures_of(rule, state, zone, at) if by_itself else 0,
        steps=in_order((str(step) for step in wanted), mode), practice=practice,
        zone_id=(known.id if known else None) or "", targets=known.targets if known else (), **asked,
    )  # fmt: skip
    return replace(state, isolation=isolation, refused=None)


def failures_of(rule: ZoneIsolation, state: ZoneState, zone: str, at: datetime) -> int:
    """Number of failures in a row soon after a return, of a zone that fails at `at`."""
    last = state.returns.get(zone)
    return failures_with(rule.failback.backoff, last.failures, last.at, at) if last is not None else 0


def promote_drill(
    rule: ZoneIsolation, state: ZoneState, drill: Isolation, at: datetime, *, because: str, **asked: Any
) -> ZoneState:
    """Give the state where a drill has become what it rehearsed: what is done is kept, the rest of the plan follows."""
    fresh = begun(rule, state, drill.zone, at, because=because, **asked)
    kept = {"done": drill.done, "touched": drill.touched, "nodes": drill.nodes, "rehearsed": drill.rehearsed}
    return updated_record(fresh, **kept)


def updated_record(state: ZoneState, **changes: Any) -> ZoneState:
    """Give the state with these fields of its record."""
    return state if state.isolation is None else replace(state, isolation=replace(state.isolation, **changes))


def zone_seen(state: ZoneState, zone: str) -> ZoneNodes | None:
    """The zone's nodes as they were last seen."""
    return state.seen.zones.get(zone) if state.seen is not None else None


def apply(rule: ZoneIsolation, state: ZoneState, event: IsolationEvent, at: datetime, **changes: Any) -> ZoneState:
    """Give the state after an event, with these changes of the record where the event moves it at all."""
    isolation = state.isolation
    if isolation is None:
        return state
    before = place_of(isolation)
    to = move(before, event, extent=extent(rule, isolation), undoing=isolation.undoing)
    if to == before:
        return state
    if to.phase is None or to.status is None:
        # Who is on the way back, or aborts, has touched something, though all of it may be undone by now. A drill must
        # not keep the rule from the real thing.
        undone = isolation.phase == "Failback" or before == ABORTING
        if isolation.practice or not (isolation.touched or undone):
            ended = isolation.touched or undone
            return replace(state, isolation=None, has_ended=state.has_ended or bool(ended and not isolation.rehearsed))
        state = replace(state, has_ended=state.has_ended or not isolation.rehearsed)
        return replace(state, isolation=None, ended_at=at, returns=_returned(isolation, state.returns, at))
    moved = replace(
        isolation, phase=to.phase.value, status=to.status.value, since=at, asked_at=None, trouble="",
        undoing=to == FAILED and before == ABORTING, failure=isolation.failure if event is IsolationEvent.RETRY else "",
        look_at=at + FIRST_LOOK if to == ISOLATED and not isolation.rehearsed else None,
    )  # fmt: skip
    if event is IsolationEvent.RETRY:
        moved = _planned_again(rule, state, moved, at)
    elif to.status is not Status.FAILED:
        moved = replace(moved, tries=0)
    return settled(rule, replace(state, isolation=replace(moved, **changes)), at)


def _returned(isolation: Isolation, returns: Mapping[str, ZoneReturn], at: datetime) -> Mapping[str, ZoneReturn]:
    """Take note that a zone is back. Who brings it back by hand answers for it: nothing counts against it any more."""
    others = {zone: one for zone, one in returns.items() if zone != isolation.zone}
    if isolation.back_by:
        return others
    return returns if isolation.by else {**others, isolation.zone: ZoneReturn(at, isolation.failures)}


def _planned_again(rule: ZoneIsolation, state: ZoneState, isolation: Isolation, at: datetime) -> Isolation:
    """A zone that has died meanwhile is cut before its pods are forced: what is left of the plan follows."""
    mode = mode_of(zone_seen(state, isolation.zone), at)
    if isolation.phase != "Failover" or mode == isolation.mode:
        return isolation
    left = [step for step in (s.value for s in rule.steps) if step in isolation.steps and step not in isolation.done]
    return replace(isolation, mode=mode, steps=(*isolation.done, *in_order(left, mode)))


def settled(rule: ZoneIsolation, state: ZoneState, at: datetime) -> ZoneState:
    """Move on where there is no step left to do, or to undo."""
    isolation = state.isolation
    if isolation is None:
        return state
    place = place_of(isolation)
    if place == RUNNING and next_step(isolation) is None:
        return apply(rule, state, IsolationEvent.ALL_STEPS_DONE, at)
    if place in (ABORTING, BACK_RUNNING) and next_undo(rule, isolation) is None:
        return apply(rule, state, IsolationEvent.UNDO_FINISHED, at)
    return state


def asked(rule: ZoneIsolation, state: ZoneState, step: str, at: datetime, *, undo: bool) -> ZoneState:
    """Remember that a step is on its way: from now on it may be done, or no longer be done, if only in part."""
    isolation = state.isolation
    if isolation is None:
        return state
    # One that was asked for before the record turned round still has its effect, but it is not what is waited for.
    ours = undo == (isolation.phase == "Failback" or isolation.status == "Aborting")
    if ours and isolation.status == "Pending":
        state = apply(rule, state, IsolationEvent.GUARDS_PASS, at)
        if (isolation := state.isolation) is None:
            return state
    expected = next_undo(rule, isolation) if undo else next_step(isolation)
    if undo:
        isolation = replace(isolation, done=_without(rule, isolation.done, step))
    elif step not in isolation.touched:
        isolation = replace(isolation, touched=(*isolation.touched, step))
    if ours and step == expected and isolation.asked_at is None:
        # A step that is tried again was asked for long ago: its time runs again.
        isolation = replace(isolation, asked_at=max(at, isolation.since))
    return replace(state, isolation=isolation)


def did(rule: ZoneIsolation, state: ZoneState, step: str, at: datetime, *, undo: bool) -> ZoneState:
    """Remember that a step is done, or undone."""
    isolation = state.isolation
    if isolation is None:
        return state
    if undo:
        touched = tuple(one for one in isolation.touched if one != step)
        done = _without(rule, isolation.done, step)
    else:
        touched = isolation.touched if step in isolation.touched else (*isolation.touched, step)
        done = isolation.done if step in isolation.done else (*isolation.done, step)
    failed = isolation.status == "Failed"  # done too late: the step counts, and a person is asked all the same
    isolation = replace(
        isolation, touched=touched, done=done, tries=isolation.tries if failed else 0,
        found=isolation.found if undo else "",
        since=isolation.since if failed or isolation.status == "Done" else at,
        asked_at=None, trouble="", failure=isolation.failure if failed else "",
    )  # fmt: skip
    if step == StepName.FENCE and not undo:
        seen = zone_seen(state, isolation.zone)
        isolation = replace(isolation, nodes=seen.nodes if seen is not None else None)
        if place_of(isolation) == ISOLATED and not isolation.rehearsed:
            isolation = replace(isolation, look_at=at)  # a pod may have slipped onto the node that has joined
    elif step == StepName.VERIFY and place_of(isolation) == ISOLATED:
        isolation = replace(isolation, look_at=None)
    return settled(rule, replace(state, isolation=isolation), at)


def _without(rule: ZoneIsolation, done: tuple[str, ...], step: str) -> tuple[str, ...]:
    """Steps that are surely done while this one is undone: pods return, and what was verified no longer is."""
    return tuple(one for one in done if one != step and leaves_something(rule, one))
