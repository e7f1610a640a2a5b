"""Defaults that the API server itself fills into new built-in objects; controllers' work is not done here."""

from __future__ import annotations

import base64
from collections.abc import Callable

from reactor.demo.kube.objects import JsonObject, without

_NO_DISRUPTIONS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _namespace(value: JsonObject) -> JsonObject:
    metadata = value["metadata"]
    labels = {"kubernetes.io/metadata.name": metadata["name"]} | (metadata.get("labels") or {})
    spec = {"finalizers": ["kubernetes"]}
    return {**value, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": {"phase": "Active"}}


def _pod(value: JsonObject) -> JsonObject:
    spec = {"restartPolicy": "Always", "schedulerName": "default-scheduler"} | (value.get("spec") or {})
    return {**value, "spec": spec, "status": {"phase": "Pending"} | (value.get("status") or {})}


def _service(value: JsonObject) -> JsonObject:
    spec = {"type": "ClusterIP", "sessionAffinity": "None"} | (value.get("spec") or {})
    return {**value, "spec": spec, "status": value.get("status") or {"loadBalancer": {}}}


def _scaled(value: JsonObject) -> JsonObject:
    return {**value, "spec": {"replicas": 1} | (value.get("spec") or {}), "status": value.get("status") or {}}


def _unscaled(value: JsonObject) -> JsonObject:
    return {**value, "status": value.get("status") or {}}


def _secret(value: JsonObject) -> JsonObject:
    plain = value.get("stringData") or {}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
    data = {**(value.get("data") or {}), **encoded}
    return {"type": "Opaque"} | without(value, "stringData") | ({"data": data} if data else {})


def _budget(value: JsonObject) -> JsonObject:
    return {**value, "status": _NO_DISRUPTIONS | (value.get("status") or {})}


_FILL: dict[str, Callable[[JsonObject], JsonObject]] = {
    "Namespace": _namespace,
    "Pod": _pod,
    "Service": _service,
    "Deployment": _scaled,
    "StatefulSet": _scaled,
    "ReplicaSet": _scaled,
    "DaemonSet": _unscaled,
    "Job": _unscaled,
    "Secret": _secret,
    "PodDisruptionBudget": _budget,
}


def defaulted(kind: str, value: JsonObject) -> JsonObject:
    """Give a new built-in object as the server would keep it."""
    fill = _FILL.get(kind)
    return fill(value) if fill else value
