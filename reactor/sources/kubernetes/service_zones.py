"""Finds the Services that have all their ready endpoints in one zone, from EndpointSlices: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from reactor.clients.kubernetes_port import JsonObject
from reactor.sources.kubernetes.endpoints import ServiceName, labels_of, project_slice, service_of

ALLOWED = "reactor/single-zone"
"""The label, with the value `allowed`, of Services that may be in one zone. Slices carry their Service's labels."""


def project(found: JsonObject) -> JsonObject:
    """Keep of an EndpointSlice what is read here."""
    slice_ = project_slice(found)
    endpoints = found.get("endpoints")
    slice_["endpoints"] = [
        {"ready": _is_ready(one), "zone": one.get("zone"), "node": one.get("nodeName")}
        for one in (endpoints if isinstance(endpoints, list) else ())
        if isinstance(one, dict)
    ]
    return slice_


def _is_ready(endpoint: JsonObject) -> bool:
    conditions = endpoint.get("conditions")
    return not isinstance(conditions, dict) or conditions.get("ready") is not False


def single_zone_services(slices: Iterable[JsonObject], zone_of_node: Mapping[str, str]) -> tuple[str, ...]:
    """Give them as `zone:namespace/name`, sorted.

    An endpoint is in the zone of its node, else in the one that its slice names. Where neither is known (an address
    outside of the cluster) the Service is not said to be in one zone.
    """
    zones: dict[ServiceName, set[str]] = defaultdict(set)
    for slice_ in slices:
        service = service_of(slice_)
        if service is None or labels_of(slice_).get(ALLOWED) == "allowed":
            continue
        for endpoint in slice_["endpoints"]:
            if endpoint["ready"]:
                zones[service].add(zone_of_node.get(endpoint["node"] or "") or str(endpoint["zone"] or ""))
    single = [(min(found), service) for service, found in zones.items() if len(found) == 1 and min(found)]
    return tuple(sorted(f"{zone}:{service.namespace}/{service.name}" for zone, service in single))
