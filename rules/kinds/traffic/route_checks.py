"""Findings about where a rule's route is: in a cluster, or as a load balancer of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rules.core.errors import Problem
from rules.kinds.traffic.model import OnAllDown, RouteSelection, TrafficFailover
from rules.rulefile.route_kinds import CUSTOM, FQDN, ROUTE_KINDS, RouteFormat, described
from rules.rulefile.yaml import Document, Path

WEIGHT_MAX: Mapping[str, int] = {"HAProxy": 256, "Route53": 255, "TargetGroups": 999}
"""The largest weight that each kind of load balancer takes; others take what a rule file may say."""


def route(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about the route's own keys."""
    yield from _custom(item.route, document, (*at, "route"))
    yield from (_in_cluster if item.route.in_cluster else _load_balancer)(item, document, at)
    kind = ROUTE_KINDS.get(item.route.kind)
    may_be_zero = item.route.kind == CUSTOM or (kind is not None and kind.all_zero)
    if item.on_all_down is OnAllDown.ZERO and not may_be_zero:
        message = f"Zero only goes with TrafficSplit: {described(item.route.kind)} is never left with all weights zero"
        yield document.problem((*at, "onAllDown"), message)


def _custom(route: RouteSelection, document: Document, at: Path) -> Iterator[Problem]:
    """Check that `customKind` names a kind of the settings, whose content is not known here."""
    if route.kind == CUSTOM and route.custom_kind is None:
        yield document.problem((*at, "customKind"), "required with kind Custom: which of the settings' routeKinds")
    elif route.kind != CUSTOM and route.custom_kind is not None:
        yield document.problem((*at, "customKind"), "only goes with kind Custom: remove it")
    elif route.custom_kind in (*ROUTE_KINDS, CUSTOM):
        yield document.problem((*at, "customKind"), f"built in: write `kind: {route.custom_kind}`")


def _of_kind(kind: RouteFormat, item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    """Check keys that only some built-in kinds have."""
    route = item.route
    if route.rule is not None and not kind.has_rules:
        yield document.problem((*at, "route", "rule"), f"{described(route.kind)} has no rules: remove it")
    if isinstance(route.rule, str) and kind.has_rules and not kind.rule_name:
        message = f"the rules of {described(route.kind)} have no names: write an index, from 0"
        yield document.problem((*at, "route", "rule"), message)
    for place, name in _services(item):
        if kind.hosts and (short := FQDN.fullmatch(name)) is not None:
            plain = short[1] if short[2] == route.namespace else f"{short[2]}/{short[1]}"
            yield document.problem((*at, *place), f"a Service is named without its domain: write {plain}")


def _services(item: TrafficFailover) -> Iterator[tuple[Path, str]]:
    for index, backend in enumerate(item.backends or ()):
        yield ("backends", index, "service"), backend.service
    if item.primary is not None:
        yield ("primary",), item.primary


def _in_cluster(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    route = item.route
    if not route.cluster:
        yield document.problem((*at, "route", "cluster"), f"required with kind: {route.kind}")
    if (route.name is None) == (route.selector is None):
        yield document.problem((*at, "route"), "needs either name or selector")
    elif route.name is not None and route.namespace is None:
        yield document.problem((*at, "route", "namespace"), "required with a name")
    if route.selector is not None and item.backends is not None and not item.templated:
        message = "with a selector, backends are read from each route: remove them, or name one route"
        yield document.problem((*at, "backends"), message)
    if (kind := ROUTE_KINDS.get(route.kind)) is not None:
        yield from _of_kind(kind, item, document, at)


def _load_balancer(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    route = item.route
    given = {"cluster": route.cluster, "namespace": route.namespace, "selector": route.selector, "rule": route.rule}
    for key, value in given.items():
        if value not in (None, ""):
            message = f"left out with kind: {route.kind}, which is in no cluster: remove it"
            yield document.problem((*at, "route", key), message)
    if route.name is None:
        yield document.problem((*at, "route"), "needs the name of an entry of the settings' loadBalancers")
    if item.backends is None:
        message = f"needs backends, each with a target: {described(route.kind)} says nothing of whose health counts"
        yield document.problem(at, message)
    most = WEIGHT_MAX.get(route.kind)
    for index, backend in enumerate(item.backends or ()):
        if backend.target is None:
            message = f"needs a target: {described(route.kind)} is in no cluster, so there is no default"
            yield document.problem((*at, "backends", index), message)
        if most is not None and backend.weight is not None and backend.weight > most:
            message = f"{described(route.kind)} takes weights up to {most}"
            yield document.problem((*at, "backends", index, "weight"), message)
