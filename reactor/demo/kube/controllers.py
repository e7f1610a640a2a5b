"""Work of controllers and kubelets, on request: nothing here runs by itself, so a test sees no surprise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor.demo.kube.object_selectors import selects
from reactor.demo.kube.objects import JsonObject, lookup, rfc3339

if TYPE_CHECKING:
    from reactor.demo.kube.cluster_state import EmulatedState

SERVICE_LABEL = "kubernetes.io/service-name"


def set_endpoints(
    cluster: EmulatedState, namespace: str, service: str, *, ready: int, not_ready: int = 0, port: int = 8080
) -> JsonObject:
    """Let a service have this many ready and not ready endpoints, in the EndpointSlice `<service>-1`."""
    endpoints = [
        {
            "addresses": [f"10.0.{number // 250}.{number % 250 + 1}"],
            "conditions": {"ready": number < ready, "serving": number < ready, "terminating": False},
            "targetRef": {"kind": "Pod", "name": f"{service}-{number}", "namespace": namespace},
        }
        for number in range(ready + not_ready)
    ]
    labels = {SERVICE_LABEL: service, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    return cluster.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": f"{service}-1", "namespace": namespace, "labels": labels},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        }
    )


def set_condition(
    cluster: EmulatedState,
    resource: str,
    name: str,
    namespace: str,
    kind: str,
    status: str,
    *,
    reason: str,
    message: str,
) -> JsonObject:
    """Set one condition in an object's status; its transition time moves only when its status does."""
    now = rfc3339(cluster.now())
    conditions = lookup(cluster.get(resource, name, namespace), ("status", "conditions")) or []
    before: JsonObject = next((one for one in conditions if one["type"] == kind), {})
    since = before.get("lastTransitionTime", now) if before.get("status") == status else now
    new = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    changed = [new if one["type"] == kind else one for one in conditions]
    patch = {"status": {"conditions": changed if before else [*changed, new]}}
    has_status = cluster.catalog.named(resource).has_status
    return cluster.patch(resource, name, patch, namespace, status=has_status)


def settle_budgets(cluster: EmulatedState, namespace: str = "") -> None:
    """Bring the status of disruption budgets up to date with their pods, as the disruption controller does.

    A percentage is of the pods that are there, since there is no workload controller to ask.
    """
    for budget in cluster.list("poddisruptionbudgets", namespace):
        metadata, spec = budget["metadata"], budget.get("spec") or {}
        pods = [
            pod
            for pod in cluster.list("pods", metadata["namespace"])
            if selects(spec.get("selector"), pod["metadata"].get("labels") or {})
        ]
        healthy = sum(_ready(pod) for pod in pods)
        if "maxUnavailable" in spec:
            desired = len(pods) - _share(spec["maxUnavailable"], len(pods))
        else:
            desired = _share(spec.get("minAvailable", 1), len(pods))
        status = {
            "observedGeneration": metadata["generation"],
            "disruptionsAllowed": max(0, healthy - desired) if pods else 0,
            "currentHealthy": healthy,
            "desiredHealthy": max(0, desired),
            "expectedPods": len(pods),
            "disruptedPods": None,
        }
        cluster.patch("poddisruptionbudgets", metadata["name"], {"status": status}, metadata["namespace"], status=True)


def _ready(pod: JsonObject) -> bool:
    conditions = lookup(pod, ("status", "conditions")) or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _share(amount: int | str, whole: int) -> int:
    """Read a number or a percentage, rounded up as the disruption controller rounds."""
    return -(-int(amount.rstrip("%")) * whole // 100) if isinstance(amount, str) else amount
