"""Premises of new weights: a primary that is left is bad, and what gets traffic for the first time is healthy."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Action, Route, SetWeights
from rules.core.premises import Alternatives, DecisionContext, Premise
from rules.core.reasons import Because
from rules.kinds.traffic.backend_backoff import service_target, weights_of
from rules.kinds.traffic.backends import primary_name
from rules.kinds.traffic.model import BackendRule, TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.traffic.state import TrafficState
from rules.rulefile.model import UnknownAs

_AWAY = (Because.PRIMARY_UNHEALTHY, Because.SECONDARIES_CHANGED)
_HOME = (Because.PRIMARY_HEALTHY, Because.RETURNING)


def premises(
    rule: TrafficFailover, action: Action, context: DecisionContext[TrafficState]
) -> Iterator[Alternatives]:  # fmt: skip
    """Give what weights rest on. Overflow shares by how healthy each backend is, so no backend has to be bad for it."""
    rule = of_object(rule, action.object)
    if not isinstance(action, SetWeights) or rule.overflow is not None:
        return
    route = context.before.state.route if context.before is not None else None
    services = [one.service for one in rule.backends or ()] or [*action.weights]
    primary = primary_name(rule, route, services) if route is not None else rule.primary or services[0]
    if action.because == Because.PRIMARY_UNHEALTHY and action.weights.get(primary) == 0:
        bad = rule.treat_unknown_as is UnknownAs.UNHEALTHY
        tolerated = rule.window(rule.toleration_seconds)
        target = _target(rule, action, primary)
        yield (Premise(target, healthy=False, unknown=bad, silence=bad, signals=rule.signals, toleration=tolerated),)
    for service in _new(rule, action, context):
        if action.because in (_HOME if service == primary else _AWAY):
            names = rule.failback.signals if service == primary else None
            least, signals = (len(names), names) if names else (1, rule.signals)
            target = _target(rule, action, service)
            yield (Premise(target, healthy=True, unobserved=True, least=least, signals=signals),)


def _new(rule: TrafficFailover, action: SetWeights, context: DecisionContext[TrafficState]) -> Iterator[str]:
    """The services that surely have no traffic yet, and whose Unknown is not taken for healthy."""
    before = context.before
    if before is None or any(isinstance(fact, Route) for fact in context.facts):
        return
    given = {
        service
        for one in (*(entry.action for entry in before.outbox), *context.earlier)
        if isinstance(one, SetWeights)
        for service, weight in one.weights.items()
        if weight
    }
    weights = weights_of(before)
    for service, weight in action.weights.items():
        backend = _backend(rule, service)
        assumed = backend is not None and backend.treat_unknown_as is not None
        if weight and weights.get(service) == 0 and service not in given and not assumed:
            yield service


def _backend(rule: TrafficFailover, service: str) -> BackendRule | None:
    return next((one for one in rule.backends or () if one.service == service), None)


def _target(rule: TrafficFailover, action: SetWeights, service: str) -> str:
    backend = _backend(rule, service)
    return (backend.target if backend is not None else None) or service_target(action.route, service)
