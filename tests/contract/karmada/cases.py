"""Placements and actions as these tests say them."""

from __future__ import annotations

from typing import Any

from bus.messages import CancelEviction, Evict, Eviction, Place, Purge, WorkloadRef
from reactor.clients.kubernetes_port import JsonObject
from tests.karmada.planes import NAMESPACE
from tests.unit.actions.workload import builders

TOLERATES = [{"operator": "Exists", "effect": "NoSchedule"}]


def duplicated(most: int | None = None, least: int = 1) -> JsonObject:
    """Full copies on as many clusters."""
    copies: JsonObject = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
    spread = [{"spreadByField": "cluster", "minGroups": least, "maxGroups": most}]
    return copies | {"spreadConstraints": spread} if most else copies


def weighted(**weights: int) -> JsonObject:
    """Replicas divided by static weights."""
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": listed},
        }
    }  # fmt: skip


AGGREGATED: JsonObject = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
}

DYNAMIC: JsonObject = {
    "replicaScheduling": {
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
}  # fmt: skip


def _about(name: str, more: dict[str, Any]) -> dict[str, Any]:
    ref = WorkloadRef(namespace=NAMESPACE, kind="Deployment", name=name)
    return {"workload": ref, "carrier": "Karmada", **more}


def place(name: str, clusters: dict[str, int], *leaving: str, mode: str = "Gracefully", **more: Any) -> Place:
    """The replacement of copies that leave in this way."""
    evictions = tuple(Eviction.model_validate({"from": one, "purgeMode": mode}) for one in leaving)
    return builders.place(clusters, leaving=leaving, evictions=evictions, **_about(name, more))


def evict(name: str, cluster: str, clusters: dict[str, int], mode: str = "Gracefully", **more: Any) -> Evict:
    """A copy leaves, and these are where the workload is to be."""
    return builders.evict(cluster, mode, clusters=clusters, **_about(name, more))


def purge(name: str, cluster: str, **more: Any) -> Purge:
    return builders.purge(cluster, **_about(name, more))


def cancel(name: str, cluster: str, **more: Any) -> CancelEviction:
    return builders.cancel(cluster, **_about(name, more))
