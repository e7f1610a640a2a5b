"""TrafficFailover as a kind of rule: what changes the state of its groups, and the answers that the engine asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.messages import Action, Fact, Route, SetWeights, TrafficCommand
from rules.core.group import with_state
from rules.core.kind import RuleKind, all_of, itself, no, none, not_asked, nothing, unchanged
from rules.core.reasons import Because, Held
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic import by_hand as traffic_by_hand
from rules.kinds.traffic import checks, requested_weights, return_checks, route_interests, route_state
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic import overflow as traffic_overflow
from rules.kinds.traffic.backend_backoff import weights_of as current_weights
from rules.kinds.traffic.backend_needs import needs
from rules.kinds.traffic.backends import (
    backends_of,
    primary_name,
)
from rules.kinds.traffic.desired_weights import desire
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_conflicts import routes
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.traffic.route_state import route_ref
from rules.kinds.traffic.state import TrafficGroup, TrafficState, without_dates
from rules.kinds.traffic.weights_premises import premises
from rules.rulefile.file_kind import FileKind, needed, tolerated
from rules.rulefile.readings import Readings


def observe(rule: TrafficFailover, group: TrafficGroup, fact: Fact, now: datetime) -> TrafficGroup:
    """Fold a listed route, or a person's word in."""
    rule = of_object(rule, group.object)
    if isinstance(fact, TrafficCommand):
        return traffic_by_hand.follow(group, fact, now) if fact.object in (None, group.object) else group
    before = group
    group = route_state.observe(rule, group, fact, now)
    if group.state.route is before.state.route or group.state.route is None:
        return group
    if before.state.route is None:
        return _first_sight(rule, group)
    if before.state.route.backends == group.state.route.backends:
        return group
    at = group.state.route.observed_at
    group = traffic_by_hand.drifted(rule, group, current_weights(before), at)
    return _moved(rule, before, group, at, own=route_state.asked_for(group))


def _first_sight(rule: TrafficFailover, group: TrafficGroup) -> TrafficGroup:
    """A primary without traffic has been left, by us or by a person: the way back is the rule's."""
    primary, weights = _primary(rule, group), current_weights(group)
    if not rule.own_way_back or primary is None or group.state.route is None:
        return group
    away = not weights.get(primary[0]) and any(weights.values())
    return traffic_backoff.left(group, primary[0], group.state.route.observed_at) if away else group


def _moved(
    rule: TrafficFailover, before: TrafficGroup, group: TrafficGroup, at: datetime, *, own: bool
) -> TrafficGroup:
    primary = _primary(rule, group)
    if primary is None or not (rule.backs_off or rule.own_way_back):
        return group
    return traffic_backoff.moved(rule, before, group, primary[0], at, own=own)


def _primary(rule: TrafficFailover, group: TrafficGroup) -> tuple[str, str] | None:
    """Give the primary's service and its target."""
    weights = current_weights(group)
    services = [backend.service for backend in rule.backends or ()] or [*weights]
    if group.state.route is None or not services:
        return None
    name = primary_name(rule, group.state.route, services)
    return (name, traffic_backoff.target_of(rule, group, name)) if name in services else None


def heard(rule: TrafficFailover, group: TrafficGroup, target: str, at: datetime) -> TrafficGroup:
    """The primary's signals say when it stopped being bad, and how its trial goes; all say what the tiers bear."""
    rule = of_object(rule, group.object)
    if group.state.failover is not None and rule.own_way_back:
        primary = _primary(rule, group)
        if primary is not None and primary[1] == target:
            group = traffic_failback.heard(rule, group, *primary, at)
    if rule.overflow is not None:
        group = traffic_overflow.watched(rule, group, route_ref(rule, group.object), at)
    return group


def advance(
    rule: TrafficFailover, group: TrafficGroup, _shared_group: TrafficGroup | None, now: datetime
) -> TrafficGroup:
    """Trials and commands have an end, and what the tiers bear changes with what is settled."""
    rule = of_object(rule, group.object)
    group = _over_time(rule, group, now)
    if rule.overflow is not None:
        group = traffic_overflow.watched(rule, group, route_ref(rule, group.object), now)
    return group


def _over_time(rule: TrafficFailover, group: TrafficGroup, now: datetime) -> TrafficGroup:
    if group.state.failover is None or group.state.route is None:
        return group
    ref = route_ref(rule, group.object)
    backends = backends_of(rule, group, group.state.route, ref, now)
    name = primary_name(rule, group.state.route, [backend.service for backend in backends]) if backends else ""
    primary = next((backend for backend in backends if backend.service == name), None)
    if primary is None:
        return group
    if rule.own_way_back:
        group = traffic_failback.advance(rule, group, primary, now)
    secondaries = [backend for backend in backends if backend is not primary]
    return traffic_by_hand.advance(rule, group, primary, secondaries, now)


def done(rule: TrafficFailover, group: TrafficGroup, action: Action, at: datetime) -> TrafficGroup:
    """The weights are as asked."""
    rule = of_object(rule, group.object)
    before = group
    group = route_state.done(rule, group, action, at)
    primary = _primary(rule, group)
    if not isinstance(action, SetWeights) or primary is None or not (group.state.failover or rule.backs_off):
        return group
    group = _moved(rule, before, group, at, own=True)
    service, target = primary
    if action.because == Because.TRIAL:
        return traffic_failback.begun(group, at)
    if action.because in (Because.TRIAL_FAILED, Because.DRIFT):
        return traffic_failback.over(group, service, at, returned=False) if action.because != Because.DRIFT else group
    returned = action.weights.get(service, 0) > 0
    group = traffic_failback.over(group, service, at, returned=returned)
    by_hand = action.because == Because.BY_HAND
    return traffic_backoff.trusted(group, target, at) if returned and (rule.own_way_back or by_hand) else group


def reset(_rule: TrafficFailover, group: TrafficGroup) -> TrafficGroup:
    """Forget what was only rehearsed."""
    return with_state(group, failover=None, asked=None)


def written(_rule: TrafficFailover, action: Action) -> str:
    """Its route."""
    return action.route.object if isinstance(action, SetWeights) else ""


KIND: RuleKind[TrafficFailover, TrafficState] = RuleKind(
    model=TrafficFailover,
    because=frozenset(
        {
            Because.PRIMARY_UNHEALTHY,
            Because.PRIMARY_HEALTHY,
            Because.SECONDARIES_CHANGED,
            Because.RETURNING,
            Because.ALL_DOWN,
            Because.PRIMARY_CHANGED,
            Because.DRIFT,
            Because.TRIAL,
            Because.TRIAL_FAILED,
            Because.BY_HAND,
        }
    ),
    holds=frozenset(
        {
            Held.NO_HEALTHY_SECONDARY,
            Held.UNKNOWN_PRIMARY,
            Held.TARGET_UNKNOWN,
            Held.ROUTE_NOT_FOUND,
            Held.ROUTE_UNUSABLE,
            Held.BACKING_OFF,
            Held.DRIFTED_BY_HAND,
            Held.OVERRIDDEN,
            Held.CHANGE_REFUSED,
        }
    ),
    actions=(SetWeights,),
    implied=nothing,
    state=TrafficState,
    resolved=frozenset({Because.PRIMARY_HEALTHY}),
    interests=route_interests.interests,
    objects=route_interests.objects,
    first=route_interests.first,
    creates_group=route_interests.opens,
    leaves=route_interests.leaves,
    everywhere=route_interests.everywhere,
    subscribed=route_interests.subscribed,
    subscribing=(Route,),
    subscribes=route_interests.subscribes,
    owner=itself,
    written=written,
    scope=route_interests.scope,
    shares_home=route_interests.shares_home,
    desire=desire,
    forbids=requested_weights.forbids,
    requested=requested_weights.requested,
    reschedules=requested_weights.reschedules,
    premises=premises,
    tells=False,
    observe=observe,
    heard=heard,
    advance=advance,
    remembers=no,
    done=done,
    failed=unchanged,
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
    selects=route_interests.covers,
    keeps=no,
    way_back_only=None,
    forget=unchanged,
    as_it_counts=unchanged,
)
"""Registration of TrafficFailover."""


def _beside(rule: TrafficFailover, readings: Mapping[str, Readings]) -> TrafficFailover:
    """A trial lasts as long as its signals need to be read."""
    return rule.reading(readings) if rule.failback.mode is FailbackMode.TRIAL else rule


FILE_KIND = FileKind(
    model=TrafficFailover,
    plain=TrafficFailover.by_services,
    beside=_beside,
    checks=checks.rule,
    checks_together=return_checks.together,
    needs=needs,
    consumers=needed(needs),
    inventory=nothing,
    reads=lambda rule: [rule.route],
    lists=no,
    tolerates=tolerated(needs),
    goes_back_at_once=True,
    hints=nothing,
    conflicts=routes,
    phrases=("moves traffic away from", "may bring traffic back to"),
)
"""Registration of TrafficFailover for the loader and the hints."""
