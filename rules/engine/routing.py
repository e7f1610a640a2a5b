"""Which groups a fact concerns, from the rules alone.

An address is a rule and a scope: the thing itself where the rule names it, else the neighbourhood (`cluster/namespace`)
in which its things are found. All groups of an address live in one partition, so their facts are in one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from bus.messages import Fact, Observation, Outcome, Pause, Resume, Route, RouteRef
from rules.kinds.traffic import service_target
from rules.language.loader import LoadedRule
from rules.language.model import Notification, OnAllDown, TrafficFailover
from rules.language.targets import matches

Address = tuple[str, str]
"""Rule and scope."""


def named_ref(rule: TrafficFailover) -> RouteRef | None:
    """The route that a rule names; None: it selects by label."""
    route = rule.route
    if route.name is None or route.namespace is None:
        return None
    return RouteRef(cluster=route.cluster, kind=route.kind, namespace=route.namespace, name=route.name, rule=route.rule)


def explicit_targets(rule: TrafficFailover, ref: RouteRef) -> frozenset[str] | None:
    """The targets of the rule's own backends; None: they are read from the route."""
    if rule.backends is None:
        return None
    return frozenset(b.target or service_target(ref, b.service) for b in rule.backends)


def scope_of(rule: LoadedRule, object_: str) -> str:
    """Give the scope in which this group of the rule lives."""
    if isinstance(rule, TrafficFailover) and rule.route.selector is not None:
        cluster, namespace = object_.split("/")[:2]
        return f"{cluster}/{namespace}"
    return object_


class Routing:
    """The addresses of facts. Built once for a rule set; asked for every fact."""

    def __init__(self, rules: Iterable[LoadedRule]) -> None:
        self.rules = {rule.name: rule for rule in rules}
        self._by_target: dict[str, list[Address]] = defaultdict(list)
        self._by_namespace: dict[str, list[Address]] = defaultdict(list)
        self._by_cluster: dict[str, list[TrafficFailover]] = defaultdict(list)
        self._by_route: dict[tuple[str, str, str, str], list[tuple[TrafficFailover, Address]]] = defaultdict(list)
        self._notifications: list[Notification] = []
        for rule in self.rules.values():
            if isinstance(rule, Notification):
                self._notifications.append(rule)
            else:
                self._add(rule)

    def _add(self, rule: TrafficFailover) -> None:
        ref = named_ref(rule)
        if ref is None:
            self._by_cluster[rule.route.cluster].append(rule)
            return
        address = (rule.name, ref.object)
        self._by_route[ref.cluster, ref.kind, ref.namespace, ref.name].append((rule, address))
        targets = explicit_targets(rule, ref)
        for target in targets or ():
            self._by_target[target].append(address)
        if targets is None or rule.on_all_down is OnAllDown.ZERO:
            # Zero is linkerd-failover's way, where the annotation may name any service of the namespace.
            self._by_namespace[f"{ref.cluster}/{ref.namespace}"].append(address)

    def addresses(self, fact: Fact) -> Sequence[Address]:
        """Give each address that the fact concerns, once. A pause or a resume concerns everybody: none is given."""
        match fact:
            case Observation():
                return list(dict.fromkeys(self._observed(fact)))
            case Route():
                return self._listed(fact)
            case Outcome():
                rule = self.rules.get(fact.rule)
                return [(fact.rule, scope_of(rule, fact.object))] if rule is not None else []
            case Pause() | Resume():
                return []

    def _observed(self, fact: Observation) -> Iterable[Address]:
        yield from self._by_target.get(fact.target, ())
        kind, *segments = fact.target.split("/")
        if kind == "service" and len(segments) == 3:
            neighbourhood = f"{segments[0]}/{segments[1]}"
            yield from self._by_namespace.get(neighbourhood, ())
            for rule in self._by_cluster.get(segments[0], ()):
                if rule.route.namespace in (None, segments[1]):
                    yield rule.name, neighbourhood
        for notification in self._notifications:
            if matches(notification.match, fact.target):
                yield notification.name, fact.target

    def _listed(self, fact: Route) -> list[Address]:
        named = self._by_route.get((fact.cluster, fact.kind, fact.namespace, fact.name), ())
        out = [address for rule, address in named if rule.route.rule == fact.rule]
        # Whether its labels are (still) selected is the group's business: it has to hear that they are not.
        out += [
            (rule.name, f"{fact.cluster}/{fact.namespace}")
            for rule in self._by_cluster.get(fact.cluster, ())
            if (rule.route.kind, rule.route.rule) == (fact.kind, fact.rule)
            and rule.route.namespace in (None, fact.namespace)
        ]
        return out
