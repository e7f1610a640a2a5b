"""Facts that concern a rule's routes, and the scopes of its groups.

A rule that names its route and its backends gets those alone. Any other learns its backends from routes: it hears
all services of their neighbourhood, `<cluster>/<namespace>`, and so do all other rules that do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bus.messages import LOAD_BALANCERS, Fact, Route, RouteRef, TrafficCommand
from rules.core.index import ANY, Glob, Path, Pattern
from rules.core.interests import Interest, any_of, commanded, routes
from rules.kinds.traffic.backend_backoff import service_target
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.traffic.route_fleet import namespace_in, of_object, places
from rules.kinds.traffic.route_state import PRIMARY_ANNOTATION, ref_of, route_ref
from rules.kinds.traffic.state import TrafficGroup
from rules.rulefile.selectors import matches as selected
from rules.rulefile.selectors import wanted_label

PARTS = 3
"""Slashes in the object of a route."""


def named_ref(rule: TrafficFailover) -> RouteRef | None:
    """The route that a rule names; None: it selects by label."""
    route = rule.route
    if route.name is not None and route.kind in LOAD_BALANCERS:
        return RouteRef(kind=route.kind, name=route.name)
    if route.name is None or route.namespace is None:
        return None
    return ref_of(route.cluster, route.kind, route.custom_kind or "", route.namespace, route.name, route.rule)


def explicit_targets(rule: TrafficFailover, ref: RouteRef) -> frozenset[str] | None:
    """The targets of the rule's own backends; None: they are read from the route."""
    rule = of_object(rule, ref.object)
    if rule.backends is None:
        return None
    return frozenset(b.target or service_target(ref, b.service) for b in rule.backends)


def shares_home(rule: TrafficFailover) -> bool:
    """True if its groups share a partition with those of all other rules of the same neighbourhood, so that
    observations are stored once for all of them."""
    # Zero is linkerd-failover's way, where the annotation may name any service of the namespace.
    from_routes = rule.route.name is None or rule.backends is None or rule.on_all_down is OnAllDown.ZERO
    return rule.route.in_cluster and from_routes


def scope(rule: TrafficFailover, object_: str) -> str:
    """The neighbourhood of the route, or the route itself."""
    return "/".join(object_.split("/")[:2]) if shares_home(rule) else object_


def interests(rule: TrafficFailover) -> Iterable[Interest]:
    """Its routes, and the targets that may be their backends."""
    yield Interest(commanded(rule.name))
    ref = named_ref(rule)
    route, in_ = rule.route, any_of(rule.route.namespace)
    if ref is None:
        called = (route.cluster, route.called, in_, ANY, repr(route.rule))
        yield Interest(("Route", *called), _RoutePlace(), label=wanted_label(route.selector or ""))
        for template in sorted({one.target for one in rule.backends or () if one.target is not None}):
            yield Interest(_filled(template), _Templated(route.cluster, template, route.namespace), subscribed=True)
    else:
        home = _Known(scope(rule, ref.object))
        yield Interest(routes(ref), home)
        for target in sorted(explicit_targets(rule, ref) or ()):
            yield Interest(("Observation", *target.split("/")), home, subscribed=True)
    if shares_home(rule):
        yield Interest(("Observation", "service", route.cluster, in_, ANY), _Neighbourhood(), subscribed=True)


def objects(rule: TrafficFailover, fact: Fact) -> Iterable[str]:
    """The route that is listed, or of which a person speaks."""
    route, ref = rule.route, named_ref(rule)
    if isinstance(fact, Route):
        if ref is not None:
            return (fact.object,) if fact.object == ref.object else ()
        same = (route.cluster, route.called, route.rule) == (fact.cluster, fact.called, fact.rule)
        return (fact.object,) if same and route.namespace in (None, fact.namespace) else ()
    if isinstance(fact, TrafficCommand) and fact.rule == rule.name:
        if ref is not None:
            return (ref.object,) if fact.object in (None, ref.object) else ()
        return (fact.object,) if fact.object and fact.object.count("/") == PARTS else ()
    return ()


def first(rule: TrafficFailover) -> Iterable[str]:
    """The route that it names."""
    ref = named_ref(rule)
    return () if ref is None else (ref.object,)


def opens(rule: TrafficFailover, fact: Fact) -> bool:
    """A route that it selects: not a person's word about one that is not there."""
    return isinstance(fact, Route) and _selects(rule, fact)


def leaves(rule: TrafficFailover, group: TrafficGroup | None, fact: Fact) -> bool:
    """A route that has lost its labels, or is gone before anything was done to it."""
    if rule.route.selector is None or not isinstance(fact, Route):
        return False
    acted = group is not None and group.generation > 0
    return not (_selects(rule, fact) or (acted and not fact.exists))


def _selects(rule: TrafficFailover, fact: Route) -> bool:
    return rule.route.selector is None or (fact.exists and selected(rule.route.selector, fact.labels))


def everywhere(rule: TrafficFailover, fact: Fact) -> bool:
    """A command for all routes that it selects."""
    return isinstance(fact, TrafficCommand) and fact.object is None and rule.route.selector is not None


def covers(rule: TrafficFailover, object_: str) -> bool:
    """True if the rule, as it is written now, still matches this route."""
    ref = named_ref(rule)
    if ref is not None:
        return object_ == ref.object
    path, _, part = object_.partition("#")
    cluster, namespace, kind, _ = path.split("/")
    route = rule.route
    # The weights that it remembers are those of one rule of an HTTPRoute, and mean nothing for another one.
    same = (cluster, kind, part) == (route.cluster, route.called, "" if route.rule is None else str(route.rule))
    return same and route.namespace in (None, namespace)


def subscribed(rule: TrafficFailover, before: TrafficGroup | None, group: TrafficGroup) -> frozenset[str] | None:
    """The targets of its backends, as long as its route stays as it was."""
    if before is not None and before.state.route is group.state.route:
        return None
    route = group.state.route
    services, primary = ([service for service, _ in route.backends], route.primary) if route else ([], None)
    # One that has only just been opened finds what was said before with its route.
    found = route is not None or rule.route.selector is None
    return _targets(rule, group.object, services, primary) if found else frozenset()


def subscribes(rule: TrafficFailover, object_: str, fact: Fact) -> frozenset[str]:
    """The targets of the backends of a route that is listed."""
    if not isinstance(fact, Route):
        return frozenset()
    services = [backend.service for backend in fact.backends]
    return _targets(rule, object_, services, fact.annotations.get(PRIMARY_ANNOTATION))


def _targets(rule: TrafficFailover, object_: str, services: Iterable[str], primary: str | None) -> frozenset[str]:
    ref = route_ref(rule, object_)
    targets = explicit_targets(rule, ref)
    if targets is None:
        targets = frozenset(service_target(ref, service) for service in services)
    if primary and rule.on_all_down is OnAllDown.ZERO:
        targets |= {service_target(ref, primary)}
    return targets


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
class _RoutePlace:
    """The place of the route."""

    def __call__(self, path: Path) -> str:
        return f"{path[1]}/{path[3]}"


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    """The place of the service."""

    def __call__(self, path: Path) -> str:
        return f"{path[2]}/{path[3]}"


@dataclass(frozen=True, slots=True)
class _Templated:
    """The place of the route whose backend has this target."""

    cluster: str
    template: str
    namespace: str | None

    def __call__(self, path: Path) -> str | None:
        found = namespace_in(self.template, "/".join(path[1:]))
        namespace = found or self.namespace
        if found is None or self.namespace not in (None, namespace):
            return None
        return f"{self.cluster}/{namespace}"
