"""The backends of a route, each with all that a decision needs to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from bus.messages import Health, RouteRef, SetWeights
from rules.core.member import Member
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic.backend_backoff import service_target as service_target
from rules.kinds.traffic.backend_backoff import weights_of
from rules.kinds.traffic.model import BackendRule, Distribution, TrafficFailover
from rules.kinds.traffic.state import RouteState, TrafficGroup


class BackendView(NamedTuple):
    """One backend with all that a decision needs to know of it."""

    service: str
    target: str
    member: Member | None
    weight: int
    """Its current weight."""
    share: int
    """Weight when healthy."""
    tier: int
    waits_until: datetime | None = None
    """End of its backoff after repeated failures: it gets no traffic before; None: no backoff."""
    assumed: bool | None = None
    """Of one of unknown health: whether it is considered healthy; None: nothing is assumed."""
    given: bool = False
    """Weights on their way give it some: it may have traffic by now, though no outcome is known."""
    taken: bool = False
    """Weights on their way take away what it has: it may be without traffic by now."""

    @property
    def settled(self) -> bool | None:
        if self.assumed is not None:
            return self.assumed
        return self.member.settled if self.member else None

    @property
    def healthy_now(self) -> bool:
        return self.assumed is True or (self.member is not None and self.member.status is Health.HEALTHY)

    @property
    def ready(self) -> bool:
        """May it get traffic? A serving one until its toleration is over; another one only while it is healthy."""
        if (self.weight > 0 and not self.taken) or self.given:
            return self.settled is not False
        return self.settled is True and self.healthy_now and self.waits_until is None


def backends_of(
    rule: TrafficFailover, group: TrafficGroup, route: RouteState, ref: RouteRef, now: datetime
) -> list[BackendView]:
    """Give the rule's backends, or those of the route, as they are now."""
    weights = weights_of(group)
    flaps = group.state.failover.flaps if group.state.failover is not None else {}
    given, taken = _given(group), _taken(group)
    rules = rule.backends or [_of_service(service) for service in weights]
    out = []
    for backend in rules:
        target = backend.target or service_target(ref, backend.service)
        member = group.members.get(target)
        share = backend.weight if backend.weight is not None else (route.healthy.get(backend.service) or 1)
        flap = flaps.get(backend.service)
        waits = traffic_backoff.waits_until(rule, flap, member) if flap is not None else None
        out.append(
            BackendView(
                backend.service, target, member, weights.get(backend.service, 0), share, backend.tier,
                waits if waits is not None and waits > now else None,
                _assumed(rule, member, now) if backend.treat_unknown_as is not None else None,
                backend.service in given, backend.service in taken,
            )
        )  # fmt: skip
    return out


@lru_cache(maxsize=65_536)
def _of_service(service: str) -> BackendRule:
    """The backend of a route as a rule without `backends` takes it; made once, as every decision asks for it."""
    return BackendRule(service=service)


def _given(group: TrafficGroup) -> frozenset[str]:
    """The backends that get weight by actions on their way.

    One that turns bad meanwhile may have traffic already, and then keeps it through its toleration. An executor that
    takes longer than a second asks before it writes, and is told that such a backend gets nothing.
    """
    return frozenset(
        service
        for entry in group.outbox
        if isinstance(entry.action, SetWeights) and not entry.ended
        for service, weight in entry.action.weights.items()
        if weight
    )


def _taken(group: TrafficGroup) -> frozenset[str]:
    """The backends that the newest of the actions on their way leaves without weight."""
    flying = [one.action for one in group.outbox if isinstance(one.action, SetWeights) and not one.ended]
    newest = max(flying, key=lambda action: action.generation, default=None)
    return frozenset(name for name, weight in newest.weights.items() if not weight) if newest else frozenset()


def _assumed(rule: TrafficFailover, member: Member | None, now: datetime) -> bool | None:
    """True if a backend of Unknown health is considered healthy: if it was bad, once its recovery would be over. None:
    its health is known."""
    if member is None or member.status is not Health.UNKNOWN:
        return None
    return member.settled is not False or now - member.since >= rule.window(rule.recovery_seconds)


def primary_name(rule: TrafficFailover, route: RouteState, services: Sequence[str]) -> str:
    """The service that is the primary: by the rule, else by annotation, else the first."""
    if rule.primary is not None:
        return rule.primary
    return route.primary if route.primary is not None else services[0]


def serving(secondaries: Sequence[BackendView]) -> list[BackendView]:
    """The ready secondaries of the lowest tier that has any."""
    ready = [backend for backend in secondaries if backend.ready]
    lowest = min((backend.tier for backend in ready), default=None)
    return [backend for backend in ready if backend.tier == lowest]


def shares_of(rule: TrafficFailover, some: Sequence[BackendView]) -> dict[str, int]:
    """Share of each of these backends, by service; all are 1 for the distribution Equal."""
    if rule.distribution is Distribution.EQUAL or not any(backend.share for backend in some):
        return {backend.service: 1 for backend in some}
    return {backend.service: backend.share for backend in some}


def everything(rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView]) -> dict[str, int]:
    """All of it to the primary."""
    explicit = next((b.weight for b in rule.backends or () if b.service == primary.service), None)
    weight = primary.share if rule.distribution is Distribution.PROPORTIONAL or explicit else 1
    return {primary.service: weight or 1} | {backend.service: 0 for backend in secondaries}


def detail_of(backend: BackendView) -> str:
    """Description of its health in one line."""
    if backend.member is None:
        return f"{backend.service}: without an observation"
    seen = f" ({backend.member.detail})" if backend.member.detail else ""
    return f"{backend.service}: {backend.member.status}{seen}"
