"""TrafficFailover: what the weights of a route should be. Grown from linkerd-failover, without its two holes.

Primary ready (for recoverySeconds): it takes everything. Primary not ready (for tolerationSeconds) and at least one
secondary ready: the ready secondaries of the lowest tier that has any share the weight. A backend that serves keeps
serving through a dip that is tolerated; one that does not serve must be healthy now to begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bus.messages import Health, RouteRef, SetWeights
from rules.core.desired import PlannedAction
from rules.core.group import updated
from rules.core.member import LONG_AGO
from rules.core.reasons import Because, Held
from rules.core.timers import first_of
from rules.core.values import replace
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic import by_hand as traffic_by_hand
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic import overflow as traffic_overflow
from rules.kinds.traffic import route_state
from rules.kinds.traffic.backend_backoff import weights_of as current_weights
from rules.kinds.traffic.backends import (
    BackendView,
    backends_of,
    detail_of,
    everything,
    primary_name,
    service_target,
    serving,
)
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.gradual_return import at_percent, due_step
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.traffic.route_fleet import of_object, too_long
from rules.kinds.traffic.route_state import route_ref
from rules.kinds.traffic.secondaries import NEVER, all_down, secondaries_serve, unsure, waits
from rules.kinds.traffic.state import Flap, RouteState, TrafficGroup, TrialState
from rules.kinds.traffic.tier_loads import healthy_percent
from rules.kinds.traffic.wanted_weights import NOTHING, DesiredWeights
from rules.kinds.traffic.weights_evidence import HOME, evidence

_SAFE = (*HOME, Because.TRIAL_FAILED, Because.BY_HAND)
"""Reasons that no guard stops: the end of a trial and a person's command besides those of the way home."""


def uneven(group: TrafficGroup, weights: Mapping[str, int]) -> bool:
    """True if any entry of the route differs from these weights."""
    if group.state.asked is not None or group.state.route is None:
        return dict(current_weights(group)) != dict(weights)
    return any(weights.get(service, weight) != weight for service, weight in group.state.route.backends)


def desire(
    rule: TrafficFailover, group: TrafficGroup, _shared_group: TrafficGroup | None, now: datetime
) -> DesiredWeights:
    """Give the weights that the rule wants now, or why it wants none."""
    rule = of_object(rule, group.object)
    ref = route_ref(rule, group.object)
    desired = _weights(rule, group, ref, now)
    if desired.weights is None or not (uneven(group, desired.weights) or _flying(group)):
        return desired
    remember = dict(group.state.route.healthy) if group.state.route else {}
    fields = {"route": ref, "weights": dict(desired.weights), "remember": remember}
    needs = tuple(evidence(rule, group, desired, ref, now))
    safe, homeward = desired.because in _SAFE, desired.because == Because.TRIAL
    act = PlannedAction(SetWeights, fields, desired.because, desired.detail, safe=safe, homeward=homeward, needs=needs)
    return replace(desired, acts=(act,))


def _flying(group: TrafficGroup) -> bool:
    return any(isinstance(entry.action, SetWeights) for entry in group.outbox)


def _weights(rule: TrafficFailover, group: TrafficGroup, ref: RouteRef, now: datetime) -> DesiredWeights:
    route = group.state.route
    if route is None:
        return NOTHING  # not yet listed: a rule never acts on ignorance
    if not route.exists:
        return DesiredWeights(held=(Held.ROUTE_NOT_FOUND, f"{ref.object} does not exist"))
    if route.problem:
        return DesiredWeights(held=(Held.ROUTE_UNUSABLE, route.problem))
    if problem := too_long(rule) if rule.route.selector is not None else "":
        return DesiredWeights(held=(Held.ROUTE_UNUSABLE, problem))
    backends = backends_of(rule, group, route, ref, now)
    if not backends:
        return NOTHING
    there = dict(route.backends)
    if missing := [backend.service for backend in backends if backend.service not in there]:
        return DesiredWeights(held=(Held.ROUTE_UNUSABLE, f"{ref.object} has no backend {missing[0]}"))
    name = primary_name(rule, route, [backend.service for backend in backends])
    primary = next((backend for backend in backends if backend.service == name), None)
    if primary is None:
        return _fitted(route, _unknown_primary(rule, group, backends, ref, name), ref)
    secondaries = [backend for backend in backends if backend is not primary]
    desired = _of_state(rule, group, primary, secondaries, now)
    if group.state.failover is not None and desired.held is None:
        desired = replace(desired, held=traffic_by_hand.refused_command(group))
    if desired.weights is None and route.lost is not None and route.lost.keys() >= {one.service for one in backends}:
        detail = f"{ref.object} has started again and has lost its weights"
        desired = replace(desired, weights=route.lost, because=Because.DRIFT, detail=detail)
    if desired.weights is None:
        return desired
    in_order = {backend.service: desired.weights[backend.service] for backend in backends}
    desired = _fitted(route, replace(desired, weights=in_order), ref)
    return desired if desired.weights is None else updated(desired, because=_why(route, desired.weights, desired))


def _fitted(route: RouteState, desired: DesiredWeights, ref: RouteRef) -> DesiredWeights:
    """The weights as the route takes them."""
    if desired.weights is None or (weights := route_state.summed(ref, route, desired.weights)) is not None:
        return desired if desired.weights is None else updated(desired, weights=weights)
    others = ", ".join(sorted({service for service, _ in route.backends if service not in desired.weights}))
    return DesiredWeights(
        held=(Held.ROUTE_UNUSABLE, f"{ref.object}: {others}, no backends of the rule, have all of the weight")
    )


def _why(route: RouteState, weights: Mapping[str, int], desired: DesiredWeights) -> str:
    """We wrote these weights, or first saw them right, and another writer has changed them."""
    stood = route.written if route.written is not None else route.disturbed
    if stood is not None and dict(stood) == weights:
        return Because.DRIFT
    changed = route.primary_changed and desired.because in (Because.DRIFT, Because.PRIMARY_HEALTHY)
    return Because.PRIMARY_CHANGED if changed else desired.because


def _of_state(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights:
    by_hand = traffic_by_hand.desired(rule, group, primary, secondaries)
    if by_hand is not None:
        return by_hand
    # Before the way back: while the primary is away the others go on sharing by what they bear.
    if rule.overflow is not None:
        return _overflowing(rule, group, primary, secondaries, now)
    if rule.own_way_back and (flap := traffic_failback.is_away(group, primary.service)) is not None:
        return _coming_back(rule, group, primary, secondaries, flap, now)
    # What does not serve has to be healthy now to begin, also where another writer took its weight.
    if primary.settled is None or (primary.settled and not primary.weight and not primary.healthy_now):
        return unsure(rule, primary)
    if primary.settled and (back_at := _back_at(rule, primary)) > now:
        return DesiredWeights(requeue_at=back_at if back_at < NEVER else None)
    if primary.waits_until is not None and not primary.weight and serving(secondaries):
        flap = traffic_failback.is_away(group, primary.service)
        why = traffic_backoff.why(primary.service, flap, primary.waits_until) if flap is not None else ""
        desired = secondaries_serve(rule, group, primary, secondaries)
        return replace(desired, held=(Held.BACKING_OFF, why), requeue_at=primary.waits_until)
    if primary.settled:
        return _primary_serves(rule, group, primary, secondaries, now)
    return secondaries_serve(rule, group, primary, secondaries)


def _overflowing(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights:
    """Each tier keeps what it bears."""
    if healthy_percent(rule, primary) is None:
        return unsure(rule, primary)
    desired = traffic_overflow.desired(rule, group, primary, secondaries, now)
    if desired is not None:
        return desired
    if primary.settled is False:
        return all_down(rule, primary, secondaries)
    if rule.failback.mode is FailbackMode.MANUAL and primary.healthy_now:
        detail = f"{primary.service} gets more only by a person's word: {', '.join(map(detail_of, secondaries))}"
        return DesiredWeights(held=(Held.NO_HEALTHY_SECONDARY, detail))
    return NOTHING


def _coming_back(
    rule: TrafficFailover,
    group: TrafficGroup,
    primary: BackendView,
    secondaries: Sequence[BackendView],
    flap: Flap,
    now: datetime,
) -> DesiredWeights:
    """The primary is away, and comes back by signals of its own, by a trial, or by a person's word."""
    trial = group.state.failover.trial if group.state.failover is not None else None
    if trial is not None and trial.passed:
        return _primary_serves(rule, group, primary, secondaries, now)
    way = traffic_failback.way_back(rule, primary, flap, now)
    if trial is not None and not trial.failed:
        return _tried(rule, primary, secondaries, trial)
    if trial is None and way.due and traffic_failback.by_trial(rule):
        return _tried(rule, primary, secondaries, None)
    alone = not serving(secondaries) and traffic_failback.way_back(rule, primary, replace(flap, failures=0), now).due
    if trial is None and (way.due or alone) and not traffic_failback.by_trial(rule):
        return _primary_serves(rule, group, primary, secondaries, now)
    desired = secondaries_serve(rule, group, primary, secondaries)
    if desired.weights is not None:
        desired = replace(desired, held=way.held)
    if trial is not None and trial.failed and primary.weight:
        desired = replace(desired, because=Because.TRIAL_FAILED, detail=f"{primary.service}: {trial.failed}")
    return replace(desired, requeue_at=first_of(way.since, desired.requeue_at))


def _tried(
    rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView], trial: TrialState | None
) -> DesiredWeights:
    """The primary gets its percent, and those that serve keep the rest."""
    requeue_at = traffic_failback.ends(rule, trial) if trial is not None else None
    if not serving(secondaries):
        detail = ", ".join(detail_of(backend) for backend in secondaries) or "there are no secondaries"
        return DesiredWeights(held=(Held.NO_HEALTHY_SECONDARY, f"a trial needs one: {detail}"), requeue_at=requeue_at)
    how = traffic_failback.trial_of(rule)
    then = f", then {', '.join(f'{step.percent} %' for step in rule.steps)}" if rule.steps else ""
    detail = f"{how.percent} % for {how.seconds:g} s{then}"
    weights = at_percent(rule, how.percent, primary, secondaries)
    return DesiredWeights(weights=weights, because=Because.TRIAL, detail=detail, requeue_at=requeue_at)


def _unknown_primary(
    rule: TrafficFailover, group: TrafficGroup, backends: Sequence[BackendView], ref: RouteRef, name: str
) -> DesiredWeights:
    """An error, unless linkerd-failover's own behaviour is asked for: there, it is a service like any other."""
    if rule.on_all_down is not OnAllDown.ZERO:
        services = ", ".join(backend.service for backend in backends)
        return DesiredWeights(held=(Held.UNKNOWN_PRIMARY, f"{name!r} is none of the backends {services}"))
    outside = group.members.get(service_target(ref, name))
    if outside is not None and outside.settled:
        return DesiredWeights(weights={backend.service: 0 for backend in backends}, because=Because.PRIMARY_HEALTHY)
    weights = {backend.service: int(backend.ready) for backend in backends}
    return DesiredWeights(
        weights=weights, because=Because.PRIMARY_UNHEALTHY if any(weights.values()) else Because.ALL_DOWN
    )


def _back_at(rule: TrafficFailover, primary: BackendView) -> datetime:
    """Give the moment from which a primary that does not serve may serve again.

    Its window says so already, unless the bus was wiped: then a primary that is healthy for the first time that we know
    of is taken as healthy at once, and only the weights still tell that it has been bad.
    """
    member = primary.member
    if member is None or primary.weight > 0 or not member.unproven:
        return LONG_AGO
    return member.since + rule.window(rule.recovery_seconds) if member.status is Health.HEALTHY else NEVER


def _primary_serves(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights:
    held = None
    if primary.member is not None and primary.member.window is not None and waits(rule, primary):
        held = (Held.TARGET_UNKNOWN, detail_of(primary))
    step, requeue_at = due_step(rule, group, primary, secondaries, now)
    if step is not None:
        weights = at_percent(rule, rule.steps[step].percent, primary, secondaries)
        detail = f"step {step + 1} of {len(rule.steps)}: {rule.steps[step].percent} %"
        return DesiredWeights(
            weights=weights, because=Because.RETURNING, detail=detail, held=held, step=step, requeue_at=requeue_at
        )
    weights = everything(rule, primary, secondaries)
    # One that is on its way may have moved traffic already: what calls it back is no answer to another writer's write.
    passed = (
        group.state.failover is not None
        and group.state.failover.trial is not None
        and group.state.failover.trial.passed
    )
    away = primary.weight == 0 or group.state.step is not None or passed or _flying(group)
    return DesiredWeights(
        weights=weights,
        because=Because.PRIMARY_HEALTHY if away else Because.DRIFT,
        detail=detail_of(primary),
        held=held,
    )


# What is taken note of.
