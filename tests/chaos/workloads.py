"""Workloads of a run: a Deployment each on cluster `one`, which may be placed on `two`, and kubelets for both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from reactor.demo.kube import WORLD, EmulatedCluster, Emulator, LoggedWrite
from tests.chaos.script import Plan
from tests.judge.object_history import Write as Seen

CLUSTERS = ("one", "two")
NAMESPACE = "shop"
TICK = 0.1


def furnish(emulator: Emulator, plan: Plan) -> None:
    """Let it run on the first cluster."""
    for name in CLUSTERS:
        emulator.cluster(name).ensure_namespace(NAMESPACE)
    emulator.cluster(CLUSTERS[0]).create(_deployment(plan.name))


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "app", "image": "registry.invalid/app:1"}]}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }  # fmt: skip


def sources() -> list[dict[str, Any]]:
    """A watch of the copies on each cluster, and a probe of it."""
    return [
        source
        for name in CLUSTERS
        for source in (
            {"name": f"api-{name}", "kind": "ClusterProbe", "cluster": name, "everySeconds": 2, "refreshSeconds": 4},
            {
                "name": f"copies-{name}", "kind": "WorkloadWatch", "cluster": name, "namespace": NAMESPACE,
                "kinds": ["Deployment"], "refreshSeconds": 4,
            },
        )
    ]  # fmt: skip


def rule(plan: Plan, longer: float) -> dict[str, Any]:
    """It leaves a cluster on which it has not been healthy for the toleration."""
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": plan.name}
    application = {
        "decisionConditions": {"tolerationSeconds": plan.toleration + longer}, "purgeMode": "Gracefully",
        "gracePeriodSeconds": 600,
    }  # fmt: skip
    return {
        "name": plan.name, "kind": "WorkloadFailover", "mode": "Enforce", "resourceSelectors": [selector],
        "placement": {
            "clusterAffinity": {"clusterNames": list(CLUSTERS)},
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        },
        "failover": {"application": application}, "guards": {"ratePerSecond": 100},
    }  # fmt: skip


def seen(plan: Plan, writes: Sequence[LoggedWrite]) -> list[Seen]:
    """The first copy elsewhere is the action; what is cleared up after it is not judged."""
    placed = [
        write
        for write in writes
        if (write.resource, write.name, write.cluster) == ("deployments", plan.name, CLUSTERS[1])
        and write.verb in ("create", "patch")
        and write.manager != WORLD
    ]
    [second] = plan.seconds
    return [Seen(write.at, {plan.name: 0, second: 1}, 1, 1) for write in placed[:1]]


class Kubelets:
    """Let the status of each Deployment follow its spec."""

    def __init__(self, emulator: Emulator) -> None:
        self._clusters = [emulator.cluster(name) for name in CLUSTERS]
        self.crashing: set[str] = set()
        """Deployments that have no healthy pod on the first cluster."""

    def turn(self, name: str, *, healthy: bool) -> None:
        """Set the health of its copy on the first cluster."""
        (self.crashing.discard if healthy else self.crashing.add)(name)
        self.look()

    async def live(self) -> None:
        """Look at every tick, without end."""
        while True:
            self.look()
            await asyncio.sleep(TICK)

    def look(self) -> None:
        """Write each status that is not as it should be."""
        for cluster in self._clusters:
            for one in cluster.list("deployments", NAMESPACE):
                self._status(cluster, one)

    def _status(self, cluster: EmulatedCluster, one: dict[str, Any]) -> None:
        metadata, wanted = one["metadata"], one["spec"].get("replicas", 1)
        crashes = cluster is self._clusters[0] and metadata["name"] in self.crashing
        available = 0 if crashes else wanted
        status = {
            "observedGeneration": metadata["generation"], "replicas": wanted, "updatedReplicas": wanted,
            "availableReplicas": available, "readyReplicas": available, "unavailableReplicas": wanted - available,
        }  # fmt: skip
        if one.get("status") != status:
            cluster.patch("deployments", metadata["name"], {"status": status}, NAMESPACE, status=True)
