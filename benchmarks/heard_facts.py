"""Facts that rules of each kind hear: looks at targets, and the inventories of routes, workloads, clusters and zones.

Each changes something that a group keeps, and nothing that it asks for: what is timed is to find the groups of a fact,
to fold it in and to decide, and not to act.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from bus.messages import (
    Backend,
    Cluster,
    ClusterTaints,
    Fact,
    Health,
    Observation,
    Route,
    Taint,
    Workload,
    WorkloadCopy,
    ZoneInventory,
    Zones,
)
from rules.rehearsal.simulation import at

TAINTING = "tainting"
"""Name of the ClusterTaint rule that says which taints it has put on a cluster."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Subject of one fact, and the time at which it was seen."""

    namespace: str
    n: int
    turn: int
    """Number of facts about the same thing before it: odd and even ones differ in their content."""
    milliseconds: int
    """Since the inventory was first listed."""

    @property
    def app(self) -> str:
        """Name of the route, workload or cluster."""
        return f"app{self.n}"

    @property
    def parity(self) -> str:
        """Label that changes with each turn."""
        return str(self.turn % 2)


@dataclass(frozen=True, slots=True)
class Heard:
    """One type of fact that rules of a form hear."""

    fact: Callable[[Moment], Fact]
    by_all: bool = False
    """True if each concerns every rule: to decide takes a time for each of them, and only that can be compared."""


def _seen_at(moment: Moment) -> timedelta:
    return timedelta(milliseconds=moment.milliseconds)


def look(target: str, *, by_all: bool = False) -> Heard:
    """Observations of a target with the placeholders `{namespace}` and `{n}`, every seventh of them Unhealthy."""

    def fact(moment: Moment) -> Fact:
        status = Health.HEALTHY if moment.turn % 7 else Health.UNHEALTHY
        return Observation(
            target=target.format(namespace=moment.namespace, n=moment.n), signal="one", stale_seconds=7200,
            status=status, observed_at=at(1) + _seen_at(moment),
        )  # fmt: skip

    return Heard(fact, by_all)


def _route(moment: Moment) -> Fact:
    backends = (Backend(service=moment.app, weight=1), Backend(service=f"{moment.app}-west", weight=0))
    labels = {"app": moment.app, "failover": "yes", "turn": moment.parity}
    return Route(
        cluster="east", kind="TrafficSplit", namespace=moment.namespace, name=moment.app, backends=backends,
        labels=labels, observed_at=at(0) + _seen_at(moment),
    )  # fmt: skip


def _workload(moment: Moment) -> Fact:
    return Workload(
        namespace="shop", kind="Deployment", name=moment.app, labels={"app": moment.app, "turn": moment.parity},
        replicas=2, clusters={"m1": 2}, observed_at=at(0) + _seen_at(moment),
    )  # fmt: skip


def _copy(moment: Moment) -> Fact:
    return WorkloadCopy(
        namespace="shop", kind="Deployment", name=moment.app, labels={"app": moment.app, "turn": moment.parity},
        replicas=2, cluster="m1", observed_at=at(0) + _seen_at(moment),
    )  # fmt: skip


def _cluster(moment: Moment) -> Fact:
    room = 10 + moment.turn % 2
    return Cluster(name=f"m{moment.n % 2 + 1}", available_replicas=room, observed_at=at(0) + _seen_at(moment))


def _taints(moment: Moment) -> Fact:
    taint = Taint(key="bad", value=moment.parity, effect="PreferNoSchedule")
    return ClusterTaints(cluster="m2", rule=TAINTING, taints=(taint,), observed_at=at(0) + _seen_at(moment))


def _zones(moment: Moment) -> Fact:
    zones = {name: ZoneInventory(nodes=3, healthy_nodes=2 + moment.turn % 2) for name in ("a", "b", "c")}
    return Zones(cluster=moment.app, zones=zones, observed_at=at(0) + _seen_at(moment))


ROUTE, WORKLOAD, COPY, ZONES = Heard(_route), Heard(_workload), Heard(_copy), Heard(_zones)
CLUSTER, TAINTS = Heard(_cluster, by_all=True), Heard(_taints, by_all=True)
