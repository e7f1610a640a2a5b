"""Which groups a fact concerns, from the rules alone.

An address is a rule and a scope: the thing itself where the rule names it, else the neighbourhood (`cluster/namespace`)
in which its things are found. All groups of an address live in one partition, so their facts are in one order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from bus.messages import (
    LOAD_BALANCERS,
    Approve,
    Claim,
    Fact,
    FailbackTraffic,
    FailbackZone,
    FailoverTraffic,
    IsolateZone,
    Observation,
    Outcome,
    Pause,
    Reject,
    ReleaseTraffic,
    Resume,
    RetryZone,
    Route,
    RouteRef,
    TrafficCommand,
    Verdict,
)
from rules.engine.registry import kind_of
from rules.kinds.traffic.kind import service_target
from rules.limits.limiters import actors
from rules.rulefile.fleet import namespace_in, of_object
from rules.rulefile.guards import FileGuard
from rules.rulefile.loader import RuleSet
from rules.rulefile.model import OnAllDown, Rule, TrafficFailover
from rules.rulefile.sources import Quorum
from rules.rulefile.targets import matches
from rules.rulefile.workload import ClusterTaint, WorkloadFailover

Address = tuple[str, str]
"""Rule and scope."""


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


def scope_of(rule: Rule, object_: str) -> str:
    """Give the scope in which this group of the rule lives."""
    if isinstance(rule, TrafficFailover) and rule.route.selector is not None:
        cluster, namespace = object_.split("/")[:2]
        return f"{cluster}/{namespace}"
    return kind_of(rule).scope(rule, object_)


class Routing:
    """The addresses of facts. Built once for a rule set; asked for every fact."""

    def __init__(self, rules: Iterable[Rule], guards: Sequence[FileGuard] = (), quorums: Iterable[Quorum] = ()) -> None:
        """`guards`: those of the rule files. `quorums`: the sources that are carried out by deciders."""
        own = list(rules)
        self.rules: dict[str, Rule] = {rule.name: rule for rule in (*own, *actors(own, guards, quorums))}
        self.file_guards = guards
        taints = [rule for rule in own if isinstance(rule, ClusterTaint)]
        self._taint_signals = [(rule.match, rule.signals) for rule in taints if rule.signals]
        self._digests: dict[str, str] = {}
        self._by_target: dict[str, list[Address]] = defaultdict(list)
        self._by_namespace: dict[str, list[Address]] = defaultdict(list)
        self._by_cluster: dict[str, list[TrafficFailover]] = defaultdict(list)
        self._templates: dict[str, list[tuple[str, TrafficFailover]]] = defaultdict(list)
        """Targets of backends in which names of routes stand, by their first word."""
        self._by_route: dict[tuple[str, str, str, str], list[tuple[TrafficFailover, Address]]] = defaultdict(list)
        self.others = [rule for rule in self.rules.values() if not isinstance(rule, TrafficFailover)]
        """The rules whose kinds say themselves what concerns them."""
        for rule in self.rules.values():
            if isinstance(rule, TrafficFailover):
                self._add(rule)

    @classmethod
    def of(cls, rules: RuleSet) -> Routing:
        """The routing of all that some rule files say."""
        return cls(rules.rules, rules.guards, [source for source in rules.sources if isinstance(source, Quorum)])

    def digest(self, name: str) -> str:
        """Give ten hex digits that are others where the rule, or a guard that means it, says something else."""
        if name not in self._digests:
            rule = self.rules[name]
            mine = [guard for guard in self.file_guards if any(matches(pattern, name) for pattern in guard.rules)]
            text = "\n".join(one.model_dump_json() for one in (rule, *mine))
            self._digests[name] = hashlib.sha256(text.encode()).hexdigest()[:10]
        return self._digests[name]

    @cached_property
    def rule_set(self) -> str:
        """Ten hex digits that are others where any rule says something else: facts may concern other groups then."""
        text = "\n".join(f"{name} {self.digest(name)}" for name in sorted(self.rules))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def _add(self, rule: TrafficFailover) -> None:
        ref = named_ref(rule)
        if ref is None:
            self._by_cluster[rule.route.cluster].append(rule)
            for template in {backend.target for backend in rule.backends or () if backend.target is not None}:
                self._templates[template.partition("/")[0]].append((template, rule))
            return
        address = (rule.name, ref.object)
        self._by_route[ref.cluster, ref.called, ref.namespace, ref.name].append((rule, address))
        targets = explicit_targets(rule, ref)
        for target in targets or ():
            self._by_target[target].append(address)
        if targets is None or rule.on_all_down is OnAllDown.ZERO:
            # Zero is linkerd-failover's way, where the annotation may name any service of the namespace.
            self._by_namespace[f"{ref.cluster}/{ref.namespace}"].append(address)

    def addresses(self, fact: Fact) -> Sequence[Address]:
        """Give each address that the fact concerns, once. A pause or a resume concerns everybody: none is given."""
        match fact:
            case Pause() | Resume():
                return []
            case Outcome() | Verdict() | Approve() | Reject():
                own = [] if fact.rule not in self.rules else [self._address(fact.rule, fact.object)]
                return list(dict.fromkeys([*own, *self._elsewhere(fact)]))
            case FailoverTraffic() | FailbackTraffic() | ReleaseTraffic():
                return self._commanded(fact)
            case IsolateZone() | FailbackZone() | RetryZone() | Claim():
                return list(dict.fromkeys(self._elsewhere(fact)))
            case Route():
                return self._listed(fact)
            case Observation():
                return list(dict.fromkeys([*self._observed(fact), *self._elsewhere(fact)]))
            case _:
                return list(dict.fromkeys(self._elsewhere(fact)))

    def is_passed_over(self, rule: Rule, fact: Fact) -> bool:
        """Whether a fact says nothing to a rule because another rule makes something else of it: `is_a_taint`."""
        return isinstance(fact, Observation) and self.is_a_taint(rule, fact.target, fact.signal)

    def is_a_taint(self, rule: Rule, target: str, signal: str) -> bool:
        """Whether a ClusterTaint rule puts taints on this cluster by this signal, and the rule does not list it.

        Then it is no word about the cluster's own health: else the workload would leave by another toleration.
        """
        if not isinstance(rule, WorkloadFailover) or rule.signals is not None or not self._taint_signals:
            return False
        return any(signal in signals and matches(match, target) for match, signals in self._taint_signals)

    def _address(self, name: str, object_: str) -> Address:
        rule = self.rules[name]
        return name, scope_of(rule, kind_of(rule).owner(rule, object_))

    def _elsewhere(self, fact: Fact) -> Iterable[Address]:
        for rule in self.others:
            if self.is_passed_over(rule, fact):
                continue
            for object_ in kind_of(rule).objects(rule, fact):
                yield rule.name, scope_of(rule, object_)

    def _observed(self, fact: Observation) -> Iterable[Address]:
        yield from self._by_target.get(fact.target, ())
        kind, *segments = fact.target.split("/")
        for template, rule in self._templates.get(kind, ()):
            namespace = namespace_in(template, fact.target)
            if namespace is not None and rule.route.namespace in (None, namespace or rule.route.namespace):
                yield rule.name, f"{rule.route.cluster}/{namespace or rule.route.namespace}"
        if kind == "service" and len(segments) == 3:
            neighbourhood = f"{segments[0]}/{segments[1]}"
            yield from self._by_namespace.get(neighbourhood, ())
            for rule in self._by_cluster.get(segments[0], ()):
                if rule.route.namespace in (None, segments[1]):
                    yield rule.name, neighbourhood

    def everywhere(self, fact: Fact) -> bool:
        """Whether it concerns groups of which only their partitions know."""
        if isinstance(fact, Pause | Resume):
            return True
        rule = self.rules.get(fact.rule) if isinstance(fact, TrafficCommand) and fact.object is None else None
        return isinstance(rule, TrafficFailover) and rule.route.selector is not None

    def _commanded(self, fact: TrafficCommand) -> Sequence[Address]:
        rule = self.rules.get(fact.rule)
        if not isinstance(rule, TrafficFailover):
            return ()
        ref = named_ref(rule)
        if ref is not None:
            return [(rule.name, ref.object)] if fact.object in (None, ref.object) else ()
        return [(rule.name, scope_of(rule, fact.object))] if fact.object and fact.object.count("/") == 3 else ()

    def _listed(self, fact: Route) -> list[Address]:
        named = self._by_route.get((fact.cluster, fact.called, fact.namespace, fact.name), ())
        out = [address for rule, address in named if rule.route.rule == fact.rule]
        # Whether its labels are (still) selected is the group's business: it has to hear that they are not.
        out += [
            (rule.name, f"{fact.cluster}/{fact.namespace}")
            for rule in self._by_cluster.get(fact.cluster, ())
            if (rule.route.called, rule.route.rule) == (fact.called, fact.rule)
            and rule.route.namespace in (None, fact.namespace)
        ]
        return out
