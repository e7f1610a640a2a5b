"""Rules for what was found, and the sources that feed them. Pure; every rule is in mode DryRun."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bus.messages import Route
from reactor.rulefiles.writer import named
from reactor.workbench.starter.look import WORKLOADS, ClusterFindings, FoundCopy
from rules.kinds.traffic.route_state import PRIMARY_ANNOTATION

RULES_MAX = 200
"""Most rules of one kind: a starter with more is too long to be read, and a rule file has limits of its own."""
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """A rule, and what a person should know of it."""

    rule: JsonObject
    about: str


@dataclass(frozen=True, slots=True)
class Starter:
    """Starter rules that are to be written."""

    clusters: tuple[str, ...]
    routes: list[Made] = field(default_factory=list)
    workloads: list[Made] = field(default_factory=list)
    zones: list[Made] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Objects that were found, or could not be read, and have no rule."""

    @property
    def rules(self) -> list[Made]:
        return [*self.routes, *self.workloads, *self.zones]

    @property
    def sources(self) -> Iterator[JsonObject]:
        """Sources of the health of the targets of these rules."""
        for cluster in _clusters(made.rule["route"]["cluster"] for made in self.routes):
            yield _source("endpoints", "EndpointsWatch", cluster)
        members = (made.rule["placement"]["clusterAffinity"]["clusterNames"] for made in self.workloads)
        for cluster in _clusters(chain.from_iterable(members)):
            yield _source("api", "ClusterProbe", cluster)
            yield _source("workloads", "WorkloadWatch", cluster) | {"kinds": [*WORKLOADS]}
        for cluster in _clusters(made.rule["cluster"] for made in self.zones):
            yield _source("nodes", "NodeWatch", cluster)


def _clusters(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _source(signal: str, kind: str, cluster: str) -> JsonObject:
    return {"name": f"{signal}-{cluster}", "kind": kind, "cluster": cluster, "signal": signal}


def starter(found: Sequence[ClusterFindings]) -> Starter:
    """Make rules of what some clusters have."""
    made = Starter(tuple(one.cluster for one in found))
    taken: set[str] = set()
    for one in found:
        made.left_out.extend(one.unread)
        made.routes.extend(_route(route, taken, alone=len(found) == 1) for route in one.routes)
        if len(one.zones) > 1:
            made.zones.append(_zones(one, taken))
        elif one.zones:
            made.left_out.append(f"{one.cluster} has one zone, {one.zones[0][0]}: there is no other to go on in")
    made.workloads.extend(_workload(copy, clusters, taken) for copy, clusters in _in_several(found))
    for rules, what in ((made.routes, "routes"), (made.workloads, "workloads")):
        if more := len(rules[RULES_MAX:]):
            made.left_out.append(f"{more} more {what}: narrow it with --namespace")
            del rules[RULES_MAX:]
    return made


def _name(wanted: str, taken: set[str]) -> str:
    name = named(wanted, taken)
    taken.add(name)
    return name


def _route(route: Route, taken: set[str], *, alone: bool) -> Made:
    where = "" if alone else f"{route.cluster}-"
    wanted = f"{where}{route.namespace}-{route.name}" + ("" if route.rule is None else f"-{route.rule}")
    heaviest = max(route.backends, key=lambda backend: backend.weight).service
    services = [backend.service for backend in route.backends]
    said = route.annotations.get(PRIMARY_ANNOTATION, heaviest)
    ref: JsonObject = {
        "cluster": route.cluster, "kind": route.kind, "namespace": route.namespace, "name": route.name,
    }  # fmt: skip
    if route.rule is not None:
        ref["rule"] = route.rule
    rule = {
        "name": _name(wanted, taken), "kind": "TrafficFailover", "mode": "DryRun", "signals": ["endpoints"],
        "route": ref, "primary": said if said in services else heaviest,
        "backends": [{"service": service} for service in dict.fromkeys(services)],
        "tolerationSeconds": 10, "recoverySeconds": 60, "failback": {"mode": "Automatic", "signals": ["endpoints"]},
    }  # fmt: skip
    weights = ", ".join(f"{backend.service}={backend.weight}" for backend in route.backends)
    about = f"The current weights: {weights}."
    if sum(backend.weight > 0 for backend in route.backends) > 1:
        about += " Traffic is divided now; this rule would give all of it to the primary. A canary? Remove the rule."
    return Made(rule, about)


def _in_several(found: Sequence[ClusterFindings]) -> Iterator[tuple[FoundCopy, dict[str, int]]]:
    """Give each workload that two or more clusters have, with its replicas there."""
    seen: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    first: dict[tuple[str, str, str], FoundCopy] = {}
    for one in found:
        for copy in one.copies:
            key = (copy.namespace, copy.kind, copy.name)
            seen[key][one.cluster] = copy.replicas
            first.setdefault(key, copy)
    for key in sorted(seen):
        if len(seen[key]) > 1:
            yield first[key], seen[key]


def _workload(copy: FoundCopy, clusters: dict[str, int], taken: set[str]) -> Made:
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": count} for name, count in clusters.items()]
    rule = {
        "name": _name(f"{copy.namespace}-{copy.name}", taken), "kind": "WorkloadFailover", "mode": "DryRun",
        "resourceSelectors": [
            {"apiVersion": "apps/v1", "kind": copy.kind, "namespace": copy.namespace, "name": copy.name}
        ],
        "placement": {
            "clusterAffinity": {"clusterNames": [*clusters]},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": weights},
            },
        },
        "failover": {"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}},
    }  # fmt: skip
    replicas = ", ".join(f"{count} in {name}" for name, count in clusters.items())
    return Made(rule, f"Current replicas: {replicas}. A cluster that fails leaves its share to the others.")


def _zones(found: ClusterFindings, taken: set[str]) -> Made:
    rule = {
        "name": _name(f"{found.cluster}-zones", taken), "kind": "ZoneIsolation", "mode": "DryRun",
        "cluster": found.cluster, "zones": [{"name": zone} for zone, _ in found.zones],
        "steps": ["Fence", "ShiftTraffic", "Evacuate", "Verify"],
    }  # fmt: skip
    nodes = ", ".join(f"{count} in {zone}" for zone, count in found.zones)
    about = (
        f"Current nodes: {nodes}. Only a person can start it as it is: by itself it acts on two signals, so add "
        "a second source for zone/… to the nodes' own."
    )
    return Made(rule, about)
