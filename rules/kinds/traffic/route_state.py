"""A route as its group knows it: what was listed, what was written, and its weights before the first failover."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from bus.json_text import parsed
from bus.messages import LOAD_BALANCERS, Action, Fact, Mode, Route, RouteRef, SetWeights
from bus.messages.routes import WEIGHT_MAX, RouteKind
from rules.core.group import with_state
from rules.core.values import replace
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import RouteState, TrafficGroup
from rules.rulefile.route_kinds import ROUTE_KINDS, service_of

PRIMARY_ANNOTATION = "failover.linkerd.io/primary-service"
DECISION_ANNOTATION = "reactor/decision"
HEALTHY_ANNOTATION = "reactor/healthy-weights"


def route_ref(rule: TrafficFailover, object_: str) -> RouteRef:
    """Give the route that a group is about, from its object (`east/shop/TrafficSplit/checkout`)."""
    route = rule.route
    if route.kind in LOAD_BALANCERS:
        return RouteRef(kind=route.kind, name=route.name or "")
    cluster, namespace, _, name = object_.split("#")[0].split("/")
    return ref_of(cluster, route.kind, route.custom_kind or "", namespace, name, route.rule)


@lru_cache(maxsize=65_536)
def ref_of(
    cluster: str, kind: RouteKind, custom_kind: str, namespace: str, name: str, rule: int | str | None
) -> RouteRef:
    """Give the route of these names; made once, as every decision asks for it."""
    return RouteRef(cluster=cluster, kind=kind, custom_kind=custom_kind, namespace=namespace, name=name, rule=rule)


def observe(rule: TrafficFailover, group: TrafficGroup, fact: Fact, now: datetime) -> TrafficGroup:
    """Fold a listed route in."""
    if not isinstance(fact, Route):
        return group
    at = min(fact.observed_at, now)
    known = group.state.route
    if known is not None and at < known.observed_at:
        return group
    if not fact.exists and rule.route.selector is not None:
        # Found by its label, and gone for good or for a moment: what is left is where its ids go on. Were they used
        # again for a route of the same name, an executor would take them for done.
        return with_state(replace(group, members={}, outbox=()), route=None, asked=None, step=None, step_at=None)
    backends = tuple(
        (service_of(fact.kind, fact.namespace, backend.service), backend.weight) for backend in fact.backends
    )
    route = RouteState(
        backends=backends,
        observed_at=at,
        exists=fact.exists,
        problem=fact.problem,
        primary=fact.annotations.get(PRIMARY_ANNOTATION),
        healthy=_healthy(fact, known),
        written=known.written if known is not None else None,
        disturbed=known.disturbed if known is not None else None,
        primary_changed=known is not None
        and (known.primary_changed or known.primary != fact.annotations.get(PRIMARY_ANNOTATION)),
        sum_to=fact.sum_to,
        all_zero=fact.all_zero,
    )
    if known is not None:
        route = replace(route, life=fact.life or known.life, lost=_lost(known, route, fact.life))
    else:
        route = replace(route, life=fact.life)
    moved = known is not None and known.backends != backends
    if moved and known is not None and known.disturbed is None and not asked_for(with_state(group, route=route)):
        route = replace(route, disturbed=_weights(known))
    group = replace(group, generation=max(group.generation, _written_generation(group, fact)))
    return with_state(group, route=route, asked=None if moved else group.state.asked)


def _lost(known: RouteState, route: RouteState, life: str) -> Mapping[str, int] | None:
    """The weights that a load balancer has forgotten with its start, until they are seen there again."""
    is_recreated = life and known.life and life != known.life and known.backends != route.backends
    before = known.lost if known.lost is not None or not is_recreated else _weights(known)
    return None if before == _weights(route) else before


def sum_of(ref: RouteRef, route: RouteState | None = None) -> int:
    """Give what the weights of a route have to add up to; 0: their ratio counts."""
    described = ROUTE_KINDS.get(ref.kind)
    if described is None:
        return route.sum_to if route is not None else 0
    return described.sum_to


def may_be_zero(kind: str, route: RouteState) -> bool:
    """True if all weights of a route may be zero."""
    described = ROUTE_KINDS.get(kind)
    return route.all_zero if described is None else described.all_zero


def summed(ref: RouteRef, route: RouteState, weights: Mapping[str, int]) -> Mapping[str, int] | None:
    """Give the weights as the route takes them: beside those of other backends they add up to what they have to.

    None: the others leave nothing of it. Parts are whole, by largest remainder; ties go to the earlier.
    """
    whole = sum_of(ref, route)
    if not whole or not any(weights.values()):
        return weights
    left = whole - sum(weight for service, weight in route.backends if service not in weights)
    if left <= 0:
        return None
    return dict(zip(weights, apportion(left, [*weights.values()]), strict=True))


def _weights(route: RouteState) -> Mapping[str, int]:
    out: dict[str, int] = {}
    for service, weight in route.backends:
        out[service] = max(weight, out.get(service, 0))
    return out


def asked_for(group: TrafficGroup) -> bool:
    """True if the weights are those in the outbox: requested, outcome not known yet."""
    if group.state.route is None:
        return False
    asked = [entry.action.weights for entry in group.outbox if isinstance(entry.action, SetWeights)]
    return any(dict(_weights(group.state.route)) | dict(weights) == _weights(group.state.route) for weights in asked)


def _healthy(fact: Route, known: RouteState | None) -> Mapping[str, int]:
    """The weights from before the first failover: by annotation, else as first seen."""
    first = {service_of(fact.kind, fact.namespace, one.service): one.weight for one in fact.backends}
    seen = known.healthy if known is not None and known.healthy else first
    text = fact.annotations.get(HEALTHY_ANNOTATION)
    if text is not None:
        try:
            value = parsed(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and all(
            type(weight) is int and 0 <= weight <= WEIGHT_MAX for weight in value.values()
        ):
            # Two rules of one HTTPRoute share the annotation: it may not know our services yet.
            return {**seen, **value}
    return seen


def _written_generation(group: TrafficGroup, fact: Route) -> int:
    """The generation in the object's annotation, so that a wiped bus does not start again below it."""
    rule, _, rest = fact.annotations.get(DECISION_ANNOTATION, "").partition("/")
    _, _, generation = rest.rpartition("/")
    return int(generation) if rule == group.rule and generation.isdecimal() and len(generation) < 18 else 0


def done(_rule: TrafficFailover, group: TrafficGroup, action: Action, at: datetime) -> TrafficGroup:
    """The weights are as asked: take them as seen, until a newer look at the route says otherwise."""
    route = group.state.route
    if not isinstance(action, SetWeights) or route is None:
        return group
    if action.mode is Mode.DRY_RUN:
        return with_state(group, asked=dict(action.weights))
    group = with_state(group, step_at=at if group.state.step is not None else None)
    # Put back is what was forgotten only when a listing shows it: while it starts again, who says so may be the one
    # that is leaving.
    lost = {**route.lost, **action.weights} if route.lost is not None else None
    route = replace(route, written=dict(action.weights), disturbed=None, lost=lost, primary_changed=False)
    group = with_state(group, route=route)
    if at < route.observed_at:
        return group  # it has been looked at since
    backends = tuple((service, action.weights.get(service, weight)) for service, weight in route.backends)
    return with_state(group, route=replace(route, backends=backends, observed_at=at, written=dict(action.weights)))
