"""Commands of people to an isolation: isolate, fail back, retry. One that cannot be followed is refused
with a reason."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bus.messages import FailbackZone, IsolateZone, RetryZone
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.zone.machine import ABORTING, BACK_FAILED, FAILED, ISOLATED, PENDING, RUNNING, Extent, IsolationEvent
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.record import apply, begun, extent, place_of, promote_drill, updated_record
from rules.kinds.zone.state import Isolation, RefusedZoneCommand, ZoneState

ZoneCommand = IsolateZone | FailbackZone | RetryZone
ABORTED = "aborted"
"""The way back of an isolation that was never finished needs no proof."""
COMMANDS_MAX = 16
"""Number of commands that are recognised when repeated: a bus may deliver everything twice."""


def follow(rule: ZoneIsolation, state: ZoneState, fact: ZoneCommand, now: datetime) -> ZoneState:
    """Give the state after a command. One that was heard already changes nothing.

    One that is older than the last one is refused, not skipped: where clocks differ, a person has to know.
    """
    at = min(fact.observed_at, now)
    said = f"{type(fact).__name__}/{fact.zone}/{fact.who}/{fact.reason}/{fact.observed_at.isoformat()}"
    if said in state.commands:
        return state
    state = replace(state, commands=(*state.commands, said)[-COMMANDS_MAX:], refused=None)
    if state.commanded_at is not None and at < state.commanded_at:
        detail = f"given at {at.isoformat()}, before the command of {state.commanded_at.isoformat()}: say it again"
        return _refuse(state, fact, Held.CHANGE_REFUSED, detail, now)
    state = replace(state, commanded_at=at)
    is_current = state.isolation is not None and state.isolation.zone == fact.zone
    if rule.zone(fact.zone) is None and not (is_current and not isinstance(fact, IsolateZone)):
        return _refuse(state, fact, Held.ZONE_NOT_FOUND, _unknown_zone(rule, fact.zone), now)
    match fact:
        case IsolateZone():
            return _isolate(rule, state, fact, now)
        case FailbackZone():
            return _fail_back(rule, state, fact, now)
        case RetryZone():
            return _retry(rule, state, fact, now)


def _refuse(state: ZoneState, fact: ZoneCommand, reason: Held, detail: str, now: datetime) -> ZoneState:
    return replace(state, refused=RefusedZoneCommand(fact.zone, reason.value, f"{fact.who} asked: {detail}", now))


def _unknown_zone(rule: ZoneIsolation, name: str) -> str:
    same = next((zone.name for zone in rule.zones if zone.id == name), None)
    if same is not None:
        return f"{name} is the id of {same}: name the zone as its nodes do"
    return f"the rule has no zone {name}; it has {', '.join(zone.name for zone in rule.zones)}"


def over(rule: ZoneIsolation, isolation: Isolation) -> bool:
    """True if a record blocks nothing: its start was refused for too long, and nothing was touched."""
    return place_of(isolation) == FAILED and extent(rule, isolation) is Extent.NOTHING


def _isolate(rule: ZoneIsolation, state: ZoneState, fact: IsolateZone, now: datetime) -> ZoneState:
    left_open = {zone: words for zone, words in state.left_open.items() if zone != fact.zone}
    state, isolation = replace(state, left_open=left_open), state.isolation
    asked: dict[str, Any] = {
        "by": fact.who, "reason": fact.reason, "force": fact.force, "allowed": tuple(fact.allow_single_zone),
    }  # fmt: skip
    if isolation is None or (over(rule, isolation) and isolation.zone != fact.zone):
        return begun(rule, state, fact.zone, now, because=Because.COMMANDED, **asked)
    if isolation.zone != fact.zone:
        reason = Held.MAX_ISOLATED_ZONES if place_of(isolation) == ISOLATED else Held.ANOTHER_IN_PROGRESS
        detail = f"{isolation.zone} is in {isolation.phase}/{isolation.status}, and one zone at a time is the limit"
        state = _refuse(state, fact, reason, detail, now)
        # A person comes before a drill: it ends, and the zone can be asked for again when it is over.
        return apply(rule, state, IsolationEvent.REMOVED, now) if isolation.practice else state
    if isolation.practice:
        return promote_drill(rule, state, isolation, now, because=Because.COMMANDED, **asked)
    if place_of(isolation) == PENDING:
        # It has not passed the guards yet; a second word may carry more than the first (force, services named).
        return replace(state, isolation=replace(isolation, because=Because.COMMANDED, since=now, **asked))
    if place_of(isolation) in (RUNNING, ISOLATED):
        # It is on its way out, or out. If the rule did that, it is a person's from now on: it stays until one opens it.
        return state if isolation.by else updated_record(state, by=fact.who, reason=fact.reason)
    return apply(
        rule, state, IsolationEvent.SAME_ADDED, now, because=Because.COMMANDED.value, back_by="", waived="", **asked
    )


def _fail_back(rule: ZoneIsolation, state: ZoneState, fact: FailbackZone, now: datetime) -> ZoneState:
    isolation = state.isolation
    if isolation is None:
        return state  # it is not isolated, which is what was asked for
    if isolation.zone != fact.zone:
        detail = f"{isolation.zone} is what is isolated, not {fact.zone}"
        return _refuse(state, fact, Held.CHANGE_REFUSED, detail, now)
    return taken_back(rule, state, fact.who, now, force=fact.force)


def taken_back(rule: ZoneIsolation, state: ZoneState, by: str, now: datetime, *, force: bool = False) -> ZoneState:
    """A person wants the zone back. What is not finished is undone at once, in whatever second of whatever step.

    What is finished comes back when the zone is proven healthy, or at once where the person answers for it.
    """
    isolation = state.isolation
    if isolation is None:
        return state
    words = f"{by} brought it back at {now.isoformat(timespec='seconds')}"
    state = replace(state, left_open={**state.left_open, isolation.zone: words})
    waived = f"forced by {by}" if force else ABORTED if _is_unfinished(rule, isolation) else isolation.waived
    if place_of(isolation) == BACK_FAILED:  # all tries may be used up: a person's word is another one
        return apply(rule, state, IsolationEvent.RETRY, now, tries=0, failure="", back_by=by, waived=waived)
    if isolation.phase == "Failback":
        return updated_record(state, back_by=by, waived=waived)
    return apply(rule, state, IsolationEvent.REMOVED, now, back_by=by, waived=waived)


def _is_unfinished(rule: ZoneIsolation, isolation: Isolation) -> bool:
    place = place_of(isolation)
    if place == PENDING:
        # All of it: a finished one whose way back was called off. One that was found may have been finished, too.
        return extent(rule, isolation) is not Extent.ALL and not isolation.found
    return place in (RUNNING, ABORTING, FAILED)


def _retry(rule: ZoneIsolation, state: ZoneState, fact: RetryZone, now: datetime) -> ZoneState:
    isolation = state.isolation
    if isolation is None or isolation.zone != fact.zone:
        return _refuse(state, fact, Held.CHANGE_REFUSED, f"no isolation of {fact.zone} has failed", now)
    return apply(rule, state, IsolationEvent.RETRY, now, tries=0, failure="")
