"""Topology of a world, from the rules alone: the objects that they are about, and the sources that observe these.

What the files name is taken as it is; what they only describe, by patterns, labels and selectors, is given names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from bus.messages import Backend, Cluster, Mode, Route, RouteRef, Workload, ZoneInventory, Zones
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.traffic.backends import service_target
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.traffic.route_interests import named_ref
from rules.kinds.workload.model import Policy, WorkloadFailover
from rules.kinds.workload.placement import ClusterAffinity
from rules.kinds.zone.model import ZoneIsolation
from rules.loader import RuleSet
from rules.rehearsal.simulation import START
from rules.rehearsal.world.names import could_observe, labels_for, labels_of, targets_of, values_of
from rules.rulefile.model import Rule
from rules.rulefile.sources import AlertmanagerWebhook, Quorum, Source
from rules.rulefile.targets import encode_segment

STALE = 90.0
"""Of a signal that no source of the files gives: the default of sources."""
PRIMARY = "failover.linkerd.io/primary-service"
NODES = 5


@dataclass(frozen=True, slots=True)
class SignalGenerator:
    """One signal about one target."""

    target: str
    signal: str
    stale: float = STALE
    alert: bool = False
    """True if it reports only while something is wrong."""
    confirms: bool = True
    """Alerts: Healthy is said after they are resolved. Else they end as Unknown."""


@dataclass(slots=True)
class Topology:
    """All that a world is made of."""

    rules: tuple[Rule, ...]
    speakers: list[SignalGenerator] = field(default_factory=list)
    routes: dict[str, Route] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    single: set[str] = field(default_factory=set)
    """Workloads whose copies are listed one by one, as plain clusters do."""
    zones: dict[str, Zones] = field(default_factory=dict)
    tolerations: dict[str, set[float]] = field(default_factory=dict)
    """Of each target: for how long rules bear that it is bad."""


def enforced(rules: RuleSet) -> RuleSet:
    """Give the rules as they would act: a DryRun rule decides as in Enforce, and one that is off is not there."""
    acting = [
        rule.model_copy(update={"mode": Mode.ENFORCE}) if rule.mode is Mode.DRY_RUN else rule
        for rule in rules.rules
        if rule.mode is not Mode.OFF
    ]
    return replace(rules, rules=tuple(acting))


def cast(rules: RuleSet) -> Topology:
    """Give all targets that these rules are about."""
    out = Topology(rules.rules)
    wanted: dict[str, set[str]] = {}
    least: dict[str, int] = {}
    for rule in rules.rules:
        for target, seconds in _watched(rule, out):
            wanted.setdefault(target, set()).update(rule.signals or ())
            out.tolerations.setdefault(target, set()).add(seconds)
            least[target] = 2 if isinstance(rule, ZoneIsolation) else 1
    quorums = [source for source in rules.sources if isinstance(source, Quorum)]
    for source in quorums:
        members = targets_of(source.members, wanted, least=4)
        for target in members:
            wanted.setdefault(target, set())
            out.tolerations.setdefault(target, set()).update(out.tolerations.get(source.target, {60.0}))
    for target in sorted(wanted):
        out.speakers += _speakers(target, wanted[target], least.get(target, 1), rules.sources)
    return out


def _speakers(target: str, wanted: set[str], least: int, sources: Iterable[Source]) -> list[SignalGenerator]:
    """The signals about a target: of the sources that could observe it, and those that rules ask for besides."""
    found: dict[str, SignalGenerator] = {}
    quorum = False
    for source in sources:
        if not could_observe(source.target, target):
            continue
        if isinstance(source, Quorum):
            quorum = True  # its members speak; what follows is the engine's own business
            continue
        alert = isinstance(source, AlertmanagerWebhook)
        confirms = not isinstance(source, AlertmanagerWebhook) or source.recovers
        found[source.says] = SignalGenerator(target, source.says, source.stale_seconds, alert, confirms)
    spoken_by_engine = {source.says for source in sources if isinstance(source, Quorum)}
    for signal in sorted(wanted - spoken_by_engine):
        found.setdefault(signal, SignalGenerator(target, signal))
    for signal in ("health", "second-opinion"):
        if quorum or len(found) >= least:
            break
        found.setdefault(signal, SignalGenerator(target, signal))
    return [found[signal] for signal in sorted(found)]


def _watched(rule: Rule, cast: Topology) -> Iterator[tuple[str, float]]:
    """Give each target that a rule watches, with its toleration; bring in what exists around it."""
    match rule:
        case TrafficFailover():
            yield from ((target, rule.toleration_seconds) for target in _routes(rule, cast))
        case WorkloadFailover():
            yield from _workloads(rule, cast)
        case ClusterTaint():
            for target in targets_of(rule.match, (f"cluster/{name}" for name in cast.clusters)):
                name = target.removeprefix("cluster/")
                cast.clusters.setdefault(name, _cluster(name, len(cast.clusters), ()))
                yield target, rule.toleration_seconds
        case ZoneIsolation():
            zones = {zone.name: ZoneInventory(nodes=NODES, healthy_nodes=NODES) for zone in rule.zones}
            needed = max(NODES * (len(zones) - 1) - 1, 1)
            cast.zones[rule.cluster_name] = Zones(
                cluster=rule.cluster_name, zones=zones, demand_nodes=needed, observed_at=START
            )
            yield from ((rule.target(zone.name), rule.toleration_seconds) for zone in rule.zones)
            stops = rule.practice.stop_signals if rule.practice is not None else ()
            yield from ((target, 60.0) for pattern in stops for target in targets_of(pattern, cast.tolerations))
        case _:
            patterns = rule.default_peers
            found = (target for pattern in patterns for target in targets_of(pattern, cast.tolerations))
            yield from ((target, rule.toleration_seconds) for target in found)


def _routes(rule: TrafficFailover, cast: Topology) -> Iterator[str]:
    refs = [named_ref(rule)]
    labels = {}
    if rule.route.selector is not None:
        labels = labels_for(rule.route.selector)
        route = rule.route.model_dump(by_alias=False, include={"cluster", "kind", "rule"})
        namespace = rule.route.namespace or "shop"
        refs = [RouteRef(**route, namespace=namespace, name=name) for name in ("web", "pay")]
    for ref in refs:
        if ref is None:
            continue
        rule = of_object(rule, ref.object)
        entries = rule.backends or ()
        services = [entry.service for entry in entries] or [ref.name, f"{ref.name}-west", f"{ref.name}-north"]
        primary = rule.primary if rule.primary in services else services[0]
        weights = {entry.service: entry.weight or 1 for entry in entries}
        cast.routes[ref.object] = Route(
            **ref.model_dump(by_alias=False), labels=labels, observed_at=START,
            annotations={PRIMARY: primary} if rule.route.selector is not None else {},
            backends=tuple(
                Backend(service=one, weight=weights.get(one, 1) if one == primary else 0) for one in services
            ),
        )  # fmt: skip
        targets = {entry.service: entry.target for entry in entries}
        yield from (targets.get(one) or service_target(ref, one) for one in services)


def _workloads(rule: WorkloadFailover, cast: Topology) -> Iterator[tuple[str, float]]:
    policy: Policy = rule
    body = None
    if rule.policies is not None:
        policy = Policy.model_validate_json(json.dumps(KARMADA), by_name=False)
        body = KARMADA
    names = _cluster_names(policy)
    terms = _terms(policy)
    for number, name in enumerate(names):
        cast.clusters[name] = _cluster(name, number, terms)
    for selector in policy.resource_selectors:
        workload = Workload(
            namespace=selector.namespace or "default", kind=selector.kind, name=selector.name or "web",
            api_version=selector.api_version, labels=labels_of(selector.label_selector), uid="uid-1",
            replicas=3, clusters=_placed(policy, names), policy=body, observed_at=START,
        )  # fmt: skip
        cast.workloads[workload.object] = workload
        if rule.carrier == "Kubernetes":
            cast.single.add(workload.object)
        application = policy.failover.application if policy.failover is not None else None
        seconds = application.decision_conditions.toleration_seconds if application is not None else 300.0
        for name in names:
            yield f"workload/{encode_segment(name)}/{workload.object}", seconds
    borne = [one.toleration_seconds for one in policy.placement.cluster_tolerations]
    for name in names:
        for one in borne or [300.0]:
            yield f"cluster/{encode_segment(name)}", rule.toleration_seconds + (one or 0.0)


KARMADA = {
    "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}],
    "failover": {
        "cluster": {"purgeMode": "Gracefully"},
        "application": {"decisionConditions": {"tolerationSeconds": 120}},
    },
}
"""The policy of a world's control plane, where a rule honours those that are there."""


def _terms(policy: Policy) -> tuple[ClusterAffinity, ...]:
    placement = policy.placement
    single = (placement.cluster_affinity,) if placement.cluster_affinity is not None else ()
    return (*single, *placement.cluster_affinities)


def _cluster_names(policy: Policy) -> list[str]:
    names = list(dict.fromkeys(name for term in _terms(policy) for name in term.cluster_names))
    excluded = {name for term in _terms(policy) for name in term.exclude}
    if names:
        return names
    return [name for name in (f"member{number}" for number in range(1, 6)) if name not in excluded]


def _placed(policy: Policy, names: list[str]) -> dict[str, int]:
    """Initial copies: on as many clusters as the policy asks for, with room left for a move."""
    constraints = policy.placement.spread_constraints
    least = next((one.min_groups for one in constraints if one.field == "cluster" and one.min_groups), 1)
    if policy.strategy == "duplicated":
        return dict.fromkeys(names[:least], 3)
    return {name: 2 - number for number, name in enumerate(names[: max(least, 2)])} if len(names) > 1 else {names[0]: 3}


def _cluster(name: str, number: int, terms: Iterable[ClusterAffinity]) -> Cluster:
    """A cluster that all groups of affinities could mean."""
    labels: dict[str, str] = {}
    fields = {"region": f"region-{number % 2}", "zone": f"zone-{number % 3}", "provider": "p"}
    for term in terms:
        labels |= labels_of(term.label_selector)
        fields |= values_of(term.field_selector.match_expressions) if term.field_selector is not None else {}
    return Cluster(
        name=name, labels=labels, available_replicas=10, observed_at=START, region=fields["region"],
        zone=fields["zone"], provider=fields["provider"],
    )  # fmt: skip
