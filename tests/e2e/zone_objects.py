"""Nodes, pods and budgets of the zones' cluster, as whole objects."""

from __future__ import annotations

from dataclasses import dataclass

from reactor.demo.kube import JsonObject
from reactor.runtime.clock import Clock

ZONES = {"eu-1a": "euc1-az1", "eu-1b": "euc1-az2", "eu-1c": "euc1-az3"}
"""Each with its ID."""
ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class Workload:
    """Something with replicas."""

    name: str
    kind: str
    replicas: int
    budget: int | None = None
    """minAvailable."""
    claim: bool = False


def stamp() -> str:
    return Clock().now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def node(name: str, zone: str) -> JsonObject:
    labels = {ZONE_LABEL: zone, "topology.k8s.aws/zone-id": ZONES[zone]}
    room = {"cpu": "4", "memory": "16Gi", "pods": "20"}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": room, "capacity": room}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status,
    }  # fmt: skip


def pod(name: str, node: str, app: str, kind: str, *, ready: bool, claim: bool = False) -> JsonObject:
    version = {"Job": "batch/v1"}.get(kind, "apps/v1")
    owner = {"apiVersion": version, "kind": kind, "name": app, "uid": f"uid-{app}", "controller": True}
    spec: JsonObject = {
        "nodeName": node,
        "containers": [{"name": app, "image": app, "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
    }
    if claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    namespace = "kube-system" if kind == "DaemonSet" else "shop"
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app}, "ownerReferences": [owner]}
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running" if ready else "Pending", "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def budget(workload: Workload) -> JsonObject:
    selector = {"matchLabels": {"app": workload.name}}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "namespace": "shop"},
        "spec": {"minAvailable": workload.budget, "selector": selector},
    }  # fmt: skip
