"""ZoneIsolation: a zone is taken out of service in order, and comes back in reverse. One group for one cluster.

What a person or the rule wants moves the record (`zone_record`), what is known decides whether it may (`zone_request`,
`zone_admission`), and the record says what is to be done next. One step at a time is on its way; a step that is not
done in time makes the isolation Failed, and nothing is undone by itself, because the zone is still bad.

A zone is never isolated without an inventory of the cluster's zones: observations alone do not say what the others can
carry. That holds in rehearsals too; a history or rule test has to list the zones.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from bus.messages import (
    Action,
    Fact,
    FailbackZone,
    IsolateZone,
    Mode,
    Observation,
    Outcome,
    RetryZone,
    Zones,
    ZoneStep,
)
from rules.core.group import updated
from rules.core.index import MANY
from rules.core.interests import Interest, commanded, observed
from rules.core.kind import RuleKind, all_of, no, no_targets, none, not_asked, nothing, unchanged, yes
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.zone import checks, zone_commands
from rules.kinds.zone import progress as zone_progress
from rules.kinds.zone import signal_spells as zone_signals
from rules.kinds.zone.lost_record import taken_up
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.next_step import desire as desire
from rules.kinds.zone.next_step import was_carried_out
from rules.kinds.zone.plan import ANNOTATION_REMOVED
from rules.kinds.zone.record import asked, did, updated_record
from rules.kinds.zone.return_hints import witnesses
from rules.kinds.zone.seen_zones import with_inventory
from rules.kinds.zone.state import ZoneGroup, ZoneState, without_dates
from rules.kinds.zone.zone_needs import consumers, lists, needs
from rules.kinds.zone.zone_premises import premises
from rules.rulefile.file_kind import FileKind, as_written, tolerated
from rules.rulefile.targets import matches


def interests(rule: ZoneIsolation) -> Iterable[Interest]:
    """Its cluster's zones, people's commands, and what stops a drill."""
    yield Interest(("Observation", *rule.target("").split("/")[:-1], MANY))
    yield Interest(("Zones", rule.cluster_name))
    yield Interest(commanded(rule.name))
    for pattern in rule.practice.stop_signals if rule.practice is not None else ():
        yield Interest(observed(pattern))


def objects(rule: ZoneIsolation, fact: Fact) -> Iterable[str]:
    """The rule's one group, where the fact is about its cluster."""
    match fact:
        case Observation():
            # One that was taken out of the rule while it is isolated has to be observed, too.
            watched = fact.target.startswith(rule.target(""))
            stops = rule.practice.stop_signals if rule.practice is not None else ()
            mine = watched or any(matches(pattern, fact.target) for pattern in stops)
        case Zones():
            mine = fact.cluster == rule.cluster_name
        case IsolateZone() | FailbackZone() | RetryZone():
            mine = fact.rule == rule.name
        case _:
            mine = False
    return (rule.object,) if mine else ()


def owner(rule: ZoneIsolation, _object: str) -> str:
    """The group that asks for an action on `<cluster>/<zone>`."""
    return rule.object


def covers(rule: ZoneIsolation, object_: str) -> bool:
    """True if the rule still matches this cluster."""
    return object_ == rule.object


def keeps(group: ZoneGroup) -> bool:
    """True if a zone is really isolated: without its record it could not be brought back."""
    isolation = group.state.isolation
    return isolation is not None and bool(isolation.touched or group.outbox) and not isolation.rehearsed


def way_back_only(rule: ZoneIsolation) -> ZoneIsolation:
    """Give the rule as it counts once it has left the rule files: what it has begun is ended and brought back as it
    says, or by a person's command; nothing is begun, because it has no zone."""
    return rule.model_copy(update={"zones": (), "practice": None})


def observe(rule: ZoneIsolation, group: ZoneGroup, fact: Fact, now: datetime) -> ZoneGroup:
    """Fold in the zones as they are listed, with an isolation that they show and that was lost; or a person's
    command."""
    group = _noted(rule, group)
    state = group.state
    match fact:
        case Zones():
            state = taken_up(rule, with_inventory(rule, state, fact, min(fact.observed_at, now)), now)
        case IsolateZone() | FailbackZone() | RetryZone():
            state = zone_commands.follow(rule, state, fact, now)
    return updated(group, state=state)


def heard(rule: ZoneIsolation, group: ZoneGroup, target: str, at: datetime) -> ZoneGroup:
    """A signal has spoken of a zone: let its clock know at once, so that nothing between is lost."""
    if not target.startswith(rule.target("")):
        return group
    return updated(group, state=zone_signals.ticked_zone(rule, group, group.state, target, at))


def _noted(rule: ZoneIsolation, group: ZoneGroup) -> ZoneGroup:
    """Take note of the step that the engine has let through: only now is anything begun."""
    state = group.state
    if state.isolation is None:
        return group
    for entry in group.outbox:
        action = entry.action
        if isinstance(action, ZoneStep) and action.zone == state.isolation.zone and entry.wanted:
            group = updated(group, state=asked(rule, state, action.step, action.decided_at, undo=action.undo))
    return group


def advance(rule: ZoneIsolation, group: ZoneGroup, _shared_group: ZoneGroup | None, now: datetime) -> ZoneGroup:
    """Changes by time and health alone: a start, a timeout, another try, the return."""
    group = _noted(rule, group)
    state = zone_signals.ticked_all(rule, group, group.state, now)
    if rule.mode is Mode.OFF or (state.isolation is not None and was_carried_out(rule, state.isolation)):
        return updated(group, state=state)
    return updated(group, state=zone_progress.passed(rule, replace(group, state=state), state, now))


def done(rule: ZoneIsolation, group: ZoneGroup, action: Action, at: datetime) -> ZoneGroup:
    """A step is done, or undone. In a dry run nothing of it has happened, and the record says so."""
    state, isolation = group.state, group.state.isolation
    if not isinstance(action, ZoneStep) or isolation is None or action.zone != isolation.zone:
        return group
    if action.mode is Mode.DRY_RUN:
        state = replace(state, isolation=replace(isolation, rehearsed=True))
    if action.undo or action.step not in isolation.touched:
        # One that was asked for and called off is done all the same, and lets no other one begin.
        state = asked(rule, state, action.step, action.decided_at, undo=action.undo)
    return updated(group, state=did(rule, state, action.step, at, undo=action.undo))


def failed(rule: ZoneIsolation, group: ZoneGroup, action: Action, fact: Outcome, at: datetime) -> ZoneGroup:
    """A step is not done yet. It is asked for again until its time is over; then this is told as the reason.

    Where the annotation that asks for the isolation is gone, that is a person's word (GEP-21): it is aborted, or fails
    back, as if it had been said here.
    """
    group = _noted(rule, group)
    state = group.state
    if not isinstance(action, ZoneStep) or state.isolation is None:
        return group
    if fact.reason == ANNOTATION_REMOVED and not action.undo and action.zone == state.isolation.zone:
        return updated(group, state=zone_commands.taken_back(rule, state, "the annotation's removal", at))
    said = ": ".join(word for word in (fact.reason or "", fact.detail) if word)
    return updated(group, state=updated_record(state, trouble=said))


def remembers(rule: ZoneIsolation, signal: str) -> bool:
    """A signal that has to prove that a zone is healthy."""
    return signal in (rule.failback.signals or ())


def reset(_rule: ZoneIsolation, group: ZoneGroup) -> ZoneGroup:
    """Forget an isolation that was only rehearsed."""
    state = group.state
    if state.isolation is not None and not state.isolation.rehearsed and state.isolation.touched:
        return group
    return updated(group, state=replace(state, isolation=None, ended_at=None))


def written(rule: ZoneIsolation, action: Action) -> str:
    """Its zone, `<cluster>/<zone>`; the cluster where that is none of the rule's."""
    if not isinstance(action, ZoneStep):
        return ""
    return f"{rule.object}/{action.zone}" if action.cluster == rule.cluster_name else action.cluster


KIND: RuleKind[ZoneIsolation, ZoneState] = RuleKind(
    model=ZoneIsolation,
    because=frozenset(
        {
            Because.ZONE_UNHEALTHY,
            Because.ZONE_RECOVERED,
            Because.COMMANDED,
            Because.PRACTICE,
            Because.ABORTED,
            Because.NODES_JOINED,
        }
    ),
    holds=frozenset(
        {
            Held.CONTROL_PLANE_UNREACHABLE,
            Held.ZONES_UNKNOWN,
            Held.ZONE_NOT_FOUND,
            Held.SINGLE_ZONE,
            Held.MAX_ISOLATED_ZONES,
            Held.ANOTHER_IN_PROGRESS,
            Held.COOLDOWN,
            Held.WIDESPREAD_FAILURE,
            Held.TOLERATION_NOT_ELAPSED,
            Held.ONE_SOURCE_ONLY,
            Held.SINGLE_ZONE_SERVICES,
            Held.QUORUM_AT_RISK,
            Held.REMAINING_ZONES_UNHEALTHY,
            Held.INSUFFICIENT_CAPACITY,
            Held.CHANGE_REFUSED,
            Held.START_EXPIRED,
            Held.STEP_FAILED,
            Held.RETRIES_EXHAUSTED,
            Held.ISOLATION_EXPIRED,
            Held.ZONE_NOT_RECOVERED,
            Held.IN_BLOCKED_WINDOW,
            Held.ISOLATION_STANDS,
            Held.ISOLATION_FOUND,
            Held.OVERRIDDEN,
            Held.PRACTICE_BLOCKED,
            Held.BACKING_OFF,
        }
    ),
    actions=(ZoneStep,),
    implied=nothing,
    state=ZoneState,
    resolved=frozenset({Because.ZONE_RECOVERED}),
    interests=interests,
    objects=objects,
    first=nothing,
    creates_group=yes,
    leaves=no,
    everywhere=no,
    subscribed=none,
    subscribing=(),
    subscribes=no_targets,
    owner=owner,
    written=written,
    scope=owner,
    shares_home=no,
    desire=desire,
    forbids=none,
    requested=unchanged,
    reschedules=no,
    premises=premises,
    tells=False,
    observe=observe,
    heard=heard,
    advance=advance,
    remembers=remembers,
    done=done,
    failed=failed,
    said=unchanged,
    reset=reset,
    without_dates=without_dates,
    emits=nothing,
    is_in_force=no,
    asked=not_asked,
    takes=none,
    skips_taken=no,
    shared_object=None,
    dependents=all_of,
    selects=covers,
    keeps=keeps,
    way_back_only=way_back_only,
    forget=unchanged,
    as_it_counts=unchanged,
)
"""Registration of ZoneIsolation."""


FILE_KIND = FileKind(
    model=ZoneIsolation,
    plain=as_written,
    beside=as_written,
    checks=checks.rule,
    checks_together=checks.together,
    needs=needs,
    consumers=consumers,
    inventory=nothing,
    reads=nothing,
    lists=lists,
    tolerates=tolerated(needs),
    goes_back_at_once=False,
    hints=witnesses,
    conflicts=nothing,
    phrases=("isolates", "may bring back"),
)
"""Registration of ZoneIsolation for the loader and the hints."""
