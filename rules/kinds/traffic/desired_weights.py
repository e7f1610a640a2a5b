"""TrafficFailover: what the weights of a route should be. Grown from linkerd-failover, without its two holes.

Primary ready (for recoverySeconds): it takes everything. Primary not ready (for tolerationSeconds) and at least one
secondary ready: the ready secondaries of the lowest tier that has any share the weight. Whoever serves keeps serving
through a dip that is tolerated; whoever does not serve must be healthy now to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from bus.messages import Health, RouteRef, SetWeights
from rules.core.desired import Evidence, PlannedAction
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic import by_hand as traffic_by_hand
from rules.kinds.traffic import failback as traffic_way_back
from rules.kinds.traffic import overflow as traffic_overflow
from rules.kinds.traffic import route_state
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.backend_backoff import weights_of as standing
from rules.kinds.traffic.backends import (
    BackendView,
    backends_of,
    detail_of,
    everything,
    primary_name,
    service_target,
    serving,
    shares_of,
)
from rules.kinds.traffic.route_state import route_ref
from rules.kinds.traffic.state import Flap, RouteState, TrafficGroup, TrialState
from rules.kinds.traffic.wanted_weights import DesiredWeights
from rules.rulefile.failback_policy import FailbackMode
from rules.rulefile.model import OnAllDown, TrafficFailover, UnknownAs
from rules.rulefile.route_fleet import of_object, too_long

NOTHING = DesiredWeights()
_HOME = (Because.PRIMARY_HEALTHY, Because.RETURNING, Because.DRIFT)
"""What brings traffic back to a healthy primary, where it belongs: no guard stops that."""
_SAFE = (*_HOME, Because.TRIAL_FAILED, Because.BY_HAND)
"""What no guard stops: neither does one the end of a trial, or a person."""
LONG_AGO, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def uneven(group: TrafficGroup, weights: Mapping[str, int]) -> bool:
    """Whether any entry of the route stands otherwise than these weights."""
    if group.state.asked is not None or group.state.route is None:
        return dict(standing(group)) != dict(weights)
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
    needs = tuple(_evidence(rule, group, desired, ref, now))
    safe, homeward = desired.because in _SAFE, desired.because == Because.TRIAL
    act = PlannedAction(SetWeights, fields, desired.because, desired.detail, safe=safe, homeward=homeward, needs=needs)
    return replace(desired, acts=(act,))


def _evidence(
    rule: TrafficFailover, group: TrafficGroup, desired: DesiredWeights, ref: RouteRef, now: datetime
) -> Iterator[Evidence]:
    """What is left for being bad has to be bad now, and what gets traffic healthy now.

    What somebody else has written is put right without a question, and what a person asks for is done: neither was
    decided by health. Nor is the end of a trial that has proven nothing. Who comes home leaves the others for
    the primary's sake, however they are.
    """
    if desired.because in (Because.DRIFT, Because.TRIAL_FAILED, Because.BY_HAND):
        return
    if desired.weights is None or group.state.route is None:
        return
    backends = backends_of(rule, group, group.state.route, ref, now)
    home = primary_name(rule, group.state.route, [backend.service for backend in backends])
    if rule.overflow is not None:
        yield from traffic_overflow.evidence(rule, group, backends, desired.weights, home, now)
        return
    flap = traffic_way_back.is_away(group, home) if rule.own_way_back else None
    for backend in backends:
        member, wanted = backend.member, desired.weights.get(backend.service, 0)
        if member is None or (backend.assumed is not None and wanted):
            continue
        target = backend.target
        if flap is not None and backend.service == home and wanted > backend.weight:
            yield from _of_way_back(rule, group, backend, flap, now)
        elif backend.weight > 0 and wanted == 0 and member.settled is False and desired.because not in _HOME:
            yield Evidence(target, healthy=False, since=member.settled_at or member.since)
        elif wanted > backend.weight == 0 and (backend.healthy_now or desired.because != Because.ALL_DOWN):
            # After a time in which nobody looked at it, what is left has to be seen as late as the first look.
            # What replaces a primary that is bad need not have been good for the recovery, what is returned to need.
            settled_at = member.settled_at if backend.service == home else None
            yield Evidence(target, healthy=True, since=max(settled_at or member.since, member.since))
        elif wanted > backend.weight and group.state.step is not None and group.state.step_at is not None:
            # The next step of a gradual return, or all of it: due when the pause of the one that stands is over.
            over = desired.step != group.state.step and group.state.step < len(rule.steps)
            pause = timedelta(seconds=rule.steps[group.state.step].pause_seconds if over else 0)
            yield Evidence(target, healthy=True, since=group.state.step_at + pause)


def _of_way_back(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, flap: Flap, now: datetime
) -> Iterator[Evidence]:
    """After a trial the signals that it was made for have to be Healthy at its end or later."""
    trial = group.state.failover.trial if group.state.failover is not None else None
    if trial is not None:
        yield Evidence(primary.target, healthy=True, since=traffic_way_back.ends(rule, trial))
        return
    way = traffic_way_back.way_back(rule, primary, flap, now)
    yield from traffic_way_back.needs(rule, primary.target, way.since or now)


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
    if missing := [backend.service for backend in backends if backend.service not in dict(route.backends)]:
        return DesiredWeights(held=(Held.ROUTE_UNUSABLE, f"{ref.object} has no backend {missing[0]}"))
    name = primary_name(rule, route, [backend.service for backend in backends])
    primary = next((backend for backend in backends if backend.service == name), None)
    if primary is None:
        return _fitted(route, _unknown_primary(rule, group, backends, ref, name), ref)
    secondaries = [backend for backend in backends if backend is not primary]
    desired = _of_state(rule, group, primary, secondaries, now)
    if group.state.failover is not None and desired.held is None:
        desired = replace(desired, held=traffic_by_hand.refusal(group))
    if desired.weights is None and route.lost is not None and route.lost.keys() >= {one.service for one in backends}:
        detail = f"{ref.object} has started anew and has forgotten its weights"
        desired = replace(desired, weights=route.lost, because=Because.DRIFT, detail=detail)
    if desired.weights is None:
        return desired
    in_order = {backend.service: desired.weights[backend.service] for backend in backends}
    desired = _fitted(route, replace(desired, weights=in_order), ref)
    return desired if desired.weights is None else replace(desired, because=_why(route, desired.weights, desired))


def _fitted(route: RouteState, desired: DesiredWeights, ref: RouteRef) -> DesiredWeights:
    """The weights as the route takes them."""
    if desired.weights is None or (weights := route_state.summed(ref, route, desired.weights)) is not None:
        return desired if desired.weights is None else replace(desired, weights=weights)
    others = ", ".join(sorted({service for service, _ in route.backends if service not in desired.weights}))
    return DesiredWeights(
        held=(Held.ROUTE_UNUSABLE, f"{ref.object}: {others}, no backends of the rule, have all of the weight")
    )


def _why(route: RouteState, weights: Mapping[str, int], desired: DesiredWeights) -> str:
    """They stood like this by our own hand, or when we first saw them right, and somebody else has changed them."""
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
    if rule.own_way_back and (flap := traffic_way_back.is_away(group, primary.service)) is not None:
        return _coming_back(rule, group, primary, secondaries, flap, now)
    # What does not serve has to be healthy now to begin, whoever has taken its weight.
    if primary.settled is None or (primary.settled and not primary.weight and not primary.healthy_now):
        return _unsure(rule, primary)
    if primary.settled and (back_at := _back_at(rule, primary)) > now:
        return DesiredWeights(requeue_at=back_at if back_at < NEVER else None)
    if primary.waits_until is not None and not primary.weight and serving(secondaries):
        flap = traffic_way_back.is_away(group, primary.service)
        why = traffic_backoff.why(primary.service, flap, primary.waits_until) if flap is not None else ""
        desired = _secondaries_serve(rule, group, primary, secondaries)
        return replace(desired, held=(Held.BACKING_OFF, why), requeue_at=primary.waits_until)
    if primary.settled:
        return _primary_serves(rule, group, primary, secondaries, now)
    return _secondaries_serve(rule, group, primary, secondaries)


def _overflowing(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights:
    """Each tier keeps what it bears."""
    if traffic_overflow.healthy_percent(rule, primary) is None:
        return _unsure(rule, primary)
    desired = traffic_overflow.desired(rule, group, primary, secondaries, now)
    if desired is not None:
        return desired
    if primary.settled is False:
        return _all_down(rule, primary, secondaries)
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
    way = traffic_way_back.way_back(rule, primary, flap, now)
    if trial is not None and not trial.failed:
        return _tried(rule, primary, secondaries, trial)
    if trial is None and way.due and traffic_way_back.by_trial(rule):
        return _tried(rule, primary, secondaries, None)
    alone = not serving(secondaries) and traffic_way_back.way_back(rule, primary, replace(flap, failures=0), now).due
    if trial is None and (way.due or alone) and not traffic_way_back.by_trial(rule):
        return _primary_serves(rule, group, primary, secondaries, now)
    desired = _secondaries_serve(rule, group, primary, secondaries)
    if desired.weights is not None:
        desired = replace(desired, held=way.held)
    if trial is not None and trial.failed and primary.weight:
        desired = replace(desired, because=Because.TRIAL_FAILED, detail=f"{primary.service}: {trial.failed}")
    return replace(desired, requeue_at=_first(way.since, desired.requeue_at))


def _tried(
    rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView], trial: TrialState | None
) -> DesiredWeights:
    """The primary gets its percent, and those that serve keep the rest."""
    requeue_at = traffic_way_back.ends(rule, trial) if trial is not None else None
    if not serving(secondaries):
        detail = ", ".join(detail_of(backend) for backend in secondaries) or "there are no secondaries"
        return DesiredWeights(held=(Held.NO_HEALTHY_SECONDARY, f"a trial needs one: {detail}"), requeue_at=requeue_at)
    how = traffic_way_back.trial_of(rule)
    then = f", then {', '.join(f'{step.percent} %' for step in rule.steps)}" if rule.steps else ""
    detail = f"{how.percent} % for {how.seconds:g} s{then}"
    weights = _at_percent(rule, how.percent, primary, secondaries)
    return DesiredWeights(weights=weights, because=Because.TRIAL, detail=detail, requeue_at=requeue_at)


def _first(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


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


def _unsure(rule: TrafficFailover, primary: BackendView) -> DesiredWeights:
    """Nothing was ever known for sure of the primary: no action, and a word where nobody knows how it is."""
    return DesiredWeights(held=(Held.TARGET_UNKNOWN, detail_of(primary))) if _waits(rule, primary) else NOTHING


def _waits(rule: TrafficFailover, backend: BackendView) -> bool:
    """Whether nobody knows how it is, and the rule waits for somebody who does."""
    unknown = backend.member is not None and backend.member.status is Health.UNKNOWN
    return unknown and rule.treat_unknown_as is UnknownAs.HOLD


def _back_at(rule: TrafficFailover, primary: BackendView) -> datetime:
    """Give the moment from which a primary that does not serve may serve again.

    Its window says so already, unless the bus was wiped: then a primary that is healthy for the first time that we know
    of is taken as healthy at once, and only the weights still tell that it has been bad.
    """
    member = primary.member
    if member is None or primary.weight > 0 or not member.unproven:
        return LONG_AGO
    return member.since + timedelta(seconds=rule.recovery_seconds) if member.status is Health.HEALTHY else NEVER


def _primary_serves(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights:
    held = None
    if primary.member is not None and primary.member.window is not None and _waits(rule, primary):
        held = (Held.TARGET_UNKNOWN, detail_of(primary))
    step, requeue_at = _step(rule, group, primary, secondaries, now)
    if step is not None:
        weights = _at_percent(rule, rule.steps[step].percent, primary, secondaries)
        detail = f"step {step + 1} of {len(rule.steps)}: {rule.steps[step].percent} %"
        return DesiredWeights(
            weights=weights, because=Because.RETURNING, detail=detail, held=held, step=step, requeue_at=requeue_at
        )
    weights = everything(rule, primary, secondaries)
    # One that is on its way may have moved traffic already: what calls it back is no answer to somebody else's write.
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


def _step(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> tuple[int | None, datetime | None]:
    """Give the step of a gradual return that is due, and when the next one is; None: everything, at once."""
    if group.state.step is None:
        first = _first_step(rule, group, primary)
        return (first, None) if first is not None and serving(secondaries) else (None, None)
    if group.state.step >= len(rule.steps) or not serving(secondaries):
        return None, None
    if group.state.step_at is None or not primary.healthy_now:
        return group.state.step, None  # not carried out yet, or no longer a moment to give it more
    next_at = group.state.step_at + timedelta(seconds=rule.steps[group.state.step].pause_seconds)
    if now < next_at:
        return group.state.step, next_at
    return (group.state.step + 1, None) if group.state.step + 1 < len(rule.steps) else (None, None)


def _first_step(rule: TrafficFailover, group: TrafficGroup, primary: BackendView) -> int | None:
    """With what a gradual return begins: after a trial, with the first step that is not below its percent."""
    trial = group.state.failover.trial if group.state.failover is not None else None
    least = traffic_way_back.trial_of(rule).percent if trial is not None and trial.passed else 0
    if primary.weight and not least:
        return None
    return next((number for number, step in enumerate(rule.steps) if step.percent >= least), None)


def _at_percent(
    rule: TrafficFailover, percent: int, primary: BackendView, secondaries: Sequence[BackendView]
) -> dict[str, int]:
    serve = serving(secondaries)
    shares = shares_of(rule, serve)
    parts = apportion(100 - percent, [shares[backend.service] for backend in serve])
    rest = {backend.service: part for backend, part in zip(serve, parts, strict=True)}
    return {primary.service: percent} | {backend.service: rest.get(backend.service, 0) for backend in secondaries}


def _secondaries_serve(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView]
) -> DesiredWeights:
    desired = _shared(rule, primary, secondaries)
    waiting = [backend for backend in secondaries if backend.waits_until is not None and not backend.weight]
    if not waiting:
        return desired
    first = min(waiting, key=lambda backend: backend.waits_until or NEVER)
    flap = traffic_way_back.is_away(group, first.service)
    why = traffic_backoff.why(first.service, flap, first.waits_until) if flap and first.waits_until else ""
    return replace(desired, held=desired.held or (Held.BACKING_OFF, why), requeue_at=first.waits_until)


def _shared(rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView]) -> DesiredWeights:
    serve = serving(secondaries)
    if not _stays(primary, secondaries) and not any(backend.settled for backend in serve):
        # It may keep what it has though nobody has spoken of it yet, but nothing is moved to it alone.
        serve = serving([backend for backend in secondaries if backend.settled is not None])
    if not serve:
        # Nobody is left who has been good for long enough: one that is good again now is better than none.
        again = [backend for backend in secondaries if backend.healthy_now]
        lowest = min((backend.tier for backend in again), default=None)
        serve = [backend for backend in again if backend.tier == lowest]
    if not serve:
        return _all_down(rule, primary, secondaries)
    shares = shares_of(rule, serve)
    weights = {primary.service: 0} | {backend.service: shares.get(backend.service, 0) for backend in secondaries}
    because = Because.PRIMARY_UNHEALTHY if primary.weight > 0 else Because.SECONDARIES_CHANGED
    # It was bad when it was last heard of, and nobody knows now: until somebody does, the rule cannot go back.
    held = (Held.TARGET_UNKNOWN, detail_of(primary)) if _waits(rule, primary) else None
    return DesiredWeights(weights=weights, because=because, detail=detail_of(primary), held=held)


def _stays(primary: BackendView, secondaries: Sequence[BackendView]) -> bool:
    """Whether those that serve go on as they are."""
    return primary.weight == 0 and all(backend.settled is not False for backend in secondaries if backend.weight > 0)


def _all_down(rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView]) -> DesiredWeights:
    waiting = [backend for backend in secondaries if backend.settled is not False]
    if rule.on_all_down is OnAllDown.HOLD or waiting:
        detail = ", ".join(detail_of(backend) for backend in secondaries) or "there are no secondaries"
        return DesiredWeights(held=(Held.NO_HEALTHY_SECONDARY, detail))
    everyone = [primary, *secondaries]
    if rule.on_all_down is OnAllDown.PRIMARY:
        weights = everything(rule, primary, secondaries)
    elif rule.on_all_down is OnAllDown.SPREAD:
        weights = shares_of(rule, everyone)
    else:
        weights = {backend.service: 0 for backend in everyone}
    return DesiredWeights(weights=weights, because=Because.ALL_DOWN, detail=f"onAllDown: {rule.on_all_down}")


# What is taken note of.
