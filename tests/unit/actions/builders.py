"""Routes and actions as tests say them: services with weights, everything else by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from bus.messages import Mode, Notify, RouteRef, SetWeights
from reactor.clients.kubernetes_port import JsonObject

START = datetime(2026, 1, 1, tzinfo=UTC)
RouteKind = Literal["TrafficSplit", "HTTPRoute", "GRPCRoute"]
Backends = Sequence[tuple[str, Any]]
"""Service and weight, in order; a weight of None is left out."""
GATEWAY = "gateway.networking.k8s.io"


def route(kind: RouteKind = "TrafficSplit", *, name: str = "checkout", rule: int | str | None = None) -> RouteRef:
    return RouteRef(cluster="east", kind=kind, namespace="shop", name=name, rule=rule)


def set_weights(weights: Mapping[str, int], to: RouteRef | None = None, **more: Any) -> SetWeights:
    """An action of generation 1 in epoch 1 on the TrafficSplit `checkout`, unless said otherwise."""
    ref = to or route()
    generation = more.setdefault("generation", 1)
    known = {
        "id": f"checkout/{ref.object}/{generation}", "rule": "checkout", "object": ref.object, "mode": Mode.ENFORCE,
        "because": "PrimaryUnhealthy", "decided_at": START, "epoch": 1,
    }  # fmt: skip
    return SetWeights(route=ref, weights=dict(weights), **{**known, **more})


def notify(*to: str, message: str = "checkout is down", **more: Any) -> Notify:
    known = {
        "id": "checkout/service/east/shop/checkout/1", "rule": "checkout", "object": "service/east/shop/checkout",
        "generation": 1, "mode": Mode.ENFORCE, "because": "TargetChanged", "decided_at": START,
    }  # fmt: skip
    return Notify(to=to, message=message, **{**known, **more})


def split(
    backends: Backends,
    *,
    annotations: Mapping[str, str] | None = None,
    name: str = "checkout",
    version: str = "v1alpha2",
) -> JsonObject:
    """A TrafficSplit."""
    listed = [_with_weight({"service": service}, weight) for service, weight in backends]
    spec = {"service": name, "backends": listed}
    return _object(f"split.smi-spec.io/{version}", "TrafficSplit", name, annotations, spec)


def backend_ref(service: str, weight: int | None = 1, **more: Any) -> JsonObject:
    """One backendRef; `namespace/name` is a Service of another namespace."""
    namespace, _, name = service.rpartition("/")
    home = {"namespace": namespace} if namespace else {}
    return _with_weight({"name": name, **home, "port": 80, **more}, weight)


def http_route(
    *rules: Sequence[JsonObject], names: Sequence[str] = (), annotations: Mapping[str, str] | None = None,
    kind: RouteKind = "HTTPRoute", name: str = "checkout", version: str = "v1",
) -> JsonObject:  # fmt: skip
    """An HTTPRoute (or GRPCRoute): each rule is a list of backendRefs."""
    listed: list[JsonObject] = [{"backendRefs": [*refs]} for refs in rules]
    for rule, called in zip(listed, names, strict=False):
        rule["name"] = called
    return _object(f"{GATEWAY}/{version}", kind, name, annotations, {"rules": listed})


def refs(backends: Backends) -> list[JsonObject]:
    return [backend_ref(service, weight) for service, weight in backends]


def weights_of(obj: JsonObject, rule: int = 0) -> list[tuple[str, Any]]:
    """Service and current weight, in order."""
    spec = obj["spec"]
    if "backends" in spec:
        return [(one["service"], one.get("weight")) for one in spec["backends"]]
    return [(one["name"], one.get("weight")) for one in spec["rules"][rule]["backendRefs"]]


def _with_weight(entry: JsonObject, weight: Any) -> JsonObject:
    return entry if weight is None else {**entry, "weight": weight}


def _object(
    api_version: str, kind: str, name: str, annotations: Mapping[str, str] | None, spec: JsonObject
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "shop"}
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def as_read(obj: JsonObject, version: str = "7") -> JsonObject:
    """The object as a server gives it: with the version that writes are conditional on."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
