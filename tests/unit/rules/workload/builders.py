"""Workloads, clusters and what becomes of them, as tests say them: `default/Deployment/nginx`, time as seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bus.messages import Cluster, CopyRecord, Fact, Hold, Taint, Workload, WorkloadCopy
from rules.engine.routing import Routing
from rules.loader import RuleSet
from rules.rehearsal.simulation import Emitted, play
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulator import line
from tests.unit.rules.builders import Event, rule_set, seen

OBJECT = "default/Deployment/nginx"
FIELDS = ("clusters", "from", "held", "taints")


def workload_rule(**keys: Any) -> dict[str, Any]:
    """A rule for nginx with both failovers, no rate and no census of bad clusters, unless given otherwise."""
    return {
        "name": "nginx", "kind": "WorkloadFailover", "mode": "Enforce", "propagateDeps": True,
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default"}],
        "failover": {"application": {}, "cluster": {}},
        "guards": {"ratePerSecond": 1000, "maxUnhealthy": "100%"},
    } | keys  # fmt: skip


def placement(*names: str, tolerate: float | None = None, spread: Mapping[str, Any] | None = None, **keys: Any) -> Any:
    """Placement on these clusters; `tolerate`: seconds for any NoExecute taint."""
    out: dict[str, Any] = {"clusterAffinity": {"clusterNames": list(names)}} if names else {}
    if tolerate is not None:
        out["clusterTolerations"] = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": tolerate}]
    if spread is not None:
        out["spreadConstraints"] = [{"spreadByField": "cluster", **spread}]
    return out | keys


def divided(**weights: int) -> dict[str, Any]:
    """Divided by static weights, or equally."""
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    preference = {"weightPreference": {"staticWeightList": listed}} if listed else {}
    return {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted", **preference}


def cluster(name: str, status: str, *, at: float, **more: Any) -> Event:
    return seen(f"cluster/{name}", status, at=at, **more)


def clusters(status: str, *names: str, at: float = 0) -> list[Event]:
    return [cluster(name, status, at=at) for name in names]


def copy(name: str, status: str, *, at: float, **more: Any) -> Event:
    """Observation of the copy in a cluster."""
    return seen(f"workload/{name}/{OBJECT}", status, at=at, **more)


def workload(copies: Mapping[str, int], *, at: float = 0, replicas: int | None = None, **more: Any) -> Event:
    """All copies together."""
    fact = Workload(
        namespace="default", kind="Deployment", name="nginx", replicas=replicas, clusters=dict(copies),
        observed_at=at_(at), **more,
    )  # fmt: skip
    return at, fact


def held_copy(
    name: str, replicas: int | None, *, at: float, exists: bool = True, record: CopyRecord | None = None
) -> Event:  # fmt: skip
    fact = WorkloadCopy(
        namespace="default", kind="Deployment", name="nginx", cluster=name, replicas=replicas, exists=exists,
        record=record, observed_at=at_(at),
    )  # fmt: skip
    return at, fact


def member(name: str, *, at: float = 0, taints: Sequence[Mapping[str, Any]] = (), **more: Any) -> Event:
    """A cluster of the inventory."""
    fact = Cluster(
        name=name, taints=tuple(Taint.model_validate(taint) for taint in taints), observed_at=at_(at), **more
    )  # fmt: skip
    return at, fact


def in_time(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event[0])


def happens(
    rules: RuleSet | Mapping[str, Any] | Sequence[Mapping[str, Any]], *events: Event, until: float = 3000,
    outcomes: bool = True,
) -> list[Emitted]:  # fmt: skip
    """Everything that comes out of a history."""
    if isinstance(rules, Mapping):
        rules = [rules]
    loaded = rules if isinstance(rules, RuleSet) else rule_set(*rules)
    return list(play(Routing.of(loaded), in_time(events), until=until, outcomes=outcomes))


def short(said: Sequence[Emitted]) -> list[tuple[Any, ...]]:
    """Second, action, and what it is about: `(300.0, "Place", {"m2": 3})`."""
    out = []
    for one in said:
        body = line(one)
        what = next(body[field] for field in FIELDS if field in body)
        out.append((one.at, body.get("action", "held"), what))
    return out


def acts(rules: Any, *events: Event, until: float = 3000, outcomes: bool = True) -> list[tuple[Any, ...]]:
    """The actions alone."""
    things = happens(rules, *events, until=until, outcomes=outcomes)
    return short([one for one in things if not isinstance(one.what, Hold)])


def holds(rules: Any, *events: Event, until: float = 3000) -> list[tuple[float, str]]:
    """The holds alone: second and reason."""
    return [(one.at, one.what.held) for one in happens(rules, *events, until=until) if isinstance(one.what, Hold)]


def fact(event: Event) -> Fact:
    return event[1]
