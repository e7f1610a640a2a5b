"""Workloads and actions on them as tests say them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bus.messages import CancelEviction, Evict, Mode, Place, Purge, SetTaints, Taint, WorkloadRef
from reactor.clients.kubernetes_port import JsonObject

DECIDED = datetime(2100, 1, 1, tzinfo=UTC)
"""After everything that an emulated cluster has made, whose clock is the real one."""
NGINX = WorkloadRef(namespace="shop", kind="Deployment", name="nginx")


def _action(key: str, more: dict[str, Any]) -> dict[str, Any]:
    ref = more.get("workload", NGINX)
    generation = more.setdefault("generation", 1)
    return {
        "id": f"nginx/{ref.object}/{generation}", "rule": "nginx", "object": ref.object, "concurrencyKey": key,
        "mode": Mode.ENFORCE, "because": "ClusterUnhealthy", "decided_at": DECIDED, "epoch": 1, "workload": ref,
        "carrier": "Kubernetes", **more,
    }  # fmt: skip


def place(clusters: dict[str, int], *sources: str, **more: Any) -> Place:
    return Place(clusters=clusters, sources=sources, **_action("place", {"propagate_deps": True, **more}))


def evict(cluster: str, mode: str = "Gracefully", **more: Any) -> Evict:
    return Evict(from_=cluster, purge_mode=mode, **_action(f"evict/{cluster}", more))  # type: ignore[arg-type]


def purge(cluster: str, **more: Any) -> Purge:
    return Purge(from_=cluster, **_action(f"purge/{cluster}", more))


def cancel(cluster: str, **more: Any) -> CancelEviction:
    return CancelEviction(from_=cluster, **_action(f"evict/{cluster}", more))


def set_taints(cluster: str, *taints: Taint, before: tuple[Taint, ...] = (), **more: Any) -> SetTaints:
    known = {
        "id": f"brownout/cluster/{cluster}/1", "rule": "brownout", "object": f"cluster/{cluster}", "generation": 1,
        "mode": Mode.ENFORCE, "because": "TargetChanged", "decided_at": DECIDED, "carrier": "Kubernetes", "epoch": 1,
    }  # fmt: skip
    return SetTaints(cluster=cluster, taints=taints, before=before, **{**known, **more})


def deployment(*, replicas: int = 3, name: str = "nginx", spec: dict[str, Any] | None = None) -> JsonObject:
    """A Deployment of one container; `spec` is merged into its pods' spec."""
    labels = {"app": name}
    pods = {"containers": [{"name": "web", "image": "registry.invalid/web:1"}], **(spec or {})}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "labels": dict(labels)},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pods},
        },
    }  # fmt: skip


NEEDY: dict[str, Any] = {
    "serviceAccountName": "web",
    "containers": [
        {
            "name": "web", "image": "registry.invalid/web:1",
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
        }
    ],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
}  # fmt: skip
"""A pod that needs one object of each kind."""


def needed() -> list[JsonObject]:
    """Objects that NEEDY names, as a cluster has them."""
    return [
        _object("ConfigMap", "settings", data={"color": "green"}),
        _object("Secret", "key", type="Opaque", data={"k": "c2VjcmV0"}),
        _object("ServiceAccount", "web", secrets=[{"name": "web-token"}]),
        _object(
            "PersistentVolumeClaim", "data",
            spec={
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-7",
            },
        ),
    ]  # fmt: skip


def _object(kind: str, name: str, **body: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **body}
