"""Which facts concern a rule's routes, and where its groups live.

A rule that names its route and its backends hears of them alone. Any other learns its backends from routes: it hears
all services of their neighbourhood, `<cluster>/<namespace>`, and so do all other rules that do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bus.messages import LOAD_BALANCERS, RouteRef
from rules.core.index import ANY, Glob, Path, Pattern
from rules.core.interests import Interest, any_of, routes
from rules.kinds.traffic.backoff import service_target
from rules.rulefile.fleet import namespace_in, of_object, places
from rules.rulefile.model import OnAllDown, TrafficFailover


def named_ref(rule: TrafficFailover) -> RouteRef | None:
    """The route that a rule names; None: it selects by label."""
    route = rule.route
    if route.name is not None and route.kind in LOAD_BALANCERS:
        return RouteRef(kind=route.kind, name=route.name)
    if route.name is None or route.namespace is None:
        return None
    return RouteRef(
        cluster=route.cluster, kind=route.kind, custom_kind=route.custom_kind or "", namespace=route.namespace,
        name=route.name, rule=route.rule,
    )  # fmt: skip


def explicit_targets(rule: TrafficFailover, ref: RouteRef) -> frozenset[str] | None:
    """The targets of the rule's own backends; None: they are read from the route."""
    rule = of_object(rule, ref.object)
    if rule.backends is None:
        return None
    return frozenset(b.target or service_target(ref, b.service) for b in rule.backends)


def shares_home(rule: TrafficFailover) -> bool:
    """Whether its groups live with those of all other rules that hear the same neighbourhood: what is said there is
    stored once for all of them."""
    # Zero is linkerd-failover's way, where the annotation may name any service of the namespace.
    from_routes = rule.route.name is None or rule.backends is None or rule.on_all_down is OnAllDown.ZERO
    return rule.route.in_cluster and from_routes


def scope(rule: TrafficFailover, object_: str) -> str:
    """The neighbourhood of the route, or the route itself."""
    return "/".join(object_.split("/")[:2]) if shares_home(rule) else object_


def interests(rule: TrafficFailover) -> Iterable[Interest]:
    """Its routes, and the targets that may be their backends."""
    ref = named_ref(rule)
    route, in_ = rule.route, any_of(rule.route.namespace)
    if ref is None:
        called = (route.cluster, route.called, in_, ANY, repr(route.rule))
        yield Interest(("Route", *called), _Listed())
        for template in sorted({one.target for one in rule.backends or () if one.target is not None}):
            yield Interest(_filled(template), _Templated(route.cluster, template, route.namespace))
    else:
        home = _Known(scope(rule, ref.object))
        yield Interest(routes(ref), home)
        for target in sorted(explicit_targets(rule, ref) or ()):
            yield Interest(("Observation", *target.split("/")), home)
    if shares_home(rule):
        yield Interest(("Observation", "service", route.cluster, in_, ANY), _Neighbourhood())


def _filled(template: str) -> Pattern:
    segments = template.split("/")
    return ("Observation", *(Glob(_wild(one)) if places(one) else one for one in segments))


def _wild(segment: str) -> str:
    return f"{segment[: segment.index('{')]}*{segment[segment.rindex('}') + 1 :]}"


@dataclass(frozen=True, slots=True)
class _Known:
    """The rule says where."""

    scope: str

    def __call__(self, _path: Path) -> str:
        return self.scope


@dataclass(frozen=True, slots=True)
class _Listed:
    """Where the route stands."""

    def __call__(self, path: Path) -> str:
        return f"{path[1]}/{path[3]}"


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    """Where the service stands."""

    def __call__(self, path: Path) -> str:
        return f"{path[2]}/{path[3]}"


@dataclass(frozen=True, slots=True)
class _Templated:
    """Where the route stands whose backend has this target."""

    cluster: str
    template: str
    namespace: str | None

    def __call__(self, path: Path) -> str | None:
        found = namespace_in(self.template, "/".join(path[1:]))
        namespace = found or self.namespace
        if found is None or self.namespace not in (None, namespace):
            return None
        return f"{self.cluster}/{namespace}"
