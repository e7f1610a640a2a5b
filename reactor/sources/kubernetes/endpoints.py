"""Counts the ready endpoints of a Service from its EndpointSlices: pure, and robust against what may be missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reactor.clients.changes import metadata_of, strings_of
from reactor.clients.kubernetes_port import JsonObject

SERVICE_LABEL = "kubernetes.io/service-name"


class ServiceName(NamedTuple):
    """A Service of one cluster."""

    namespace: str
    name: str


class Readiness(NamedTuple):
    """Endpoints of one Service, each counted once."""

    ready: int
    total: int


def project_slice(found: JsonObject) -> JsonObject:
    """Keep of an EndpointSlice what is read here: a thousand slices are most of a cluster's watch traffic."""
    endpoints = found.get("endpoints")
    kept = [
        {"addresses": endpoint.get("addresses"), "conditions": endpoint.get("conditions")}
        for endpoint in (endpoints if isinstance(endpoints, list) else ())
        if isinstance(endpoint, dict)
    ]
    return {**_identity(found), "addressType": found.get("addressType"), "endpoints": kept}


def project_service(found: JsonObject) -> JsonObject:
    """Keep of a Service its labels and its type."""
    spec = found.get("spec")
    return {**_identity(found), "type": spec.get("type") if isinstance(spec, dict) else None}


def _identity(found: JsonObject) -> JsonObject:
    metadata = metadata_of(found)
    return {
        "metadata": {
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
            "labels": strings_of(metadata.get("labels")),
        }
    }


def labels_of(found: JsonObject) -> dict[str, str]:
    """Give the labels of a projected object."""
    return strings_of(metadata_of(found).get("labels"))


def service_of(slice_: JsonObject) -> ServiceName | None:
    """Give the Service that a projected slice belongs to, None for a slice that belongs to none."""
    name, namespace = labels_of(slice_).get(SERVICE_LABEL), metadata_of(slice_).get("namespace")
    return ServiceName(namespace, name) if name and isinstance(namespace, str) and namespace else None


def readiness(slices: Iterable[JsonObject]) -> Readiness:
    """Count over all slices of one Service.

    A dual-stack Service has every endpoint twice, in slices of two address types: the larger family counts. While a
    slice is split or joined an endpoint is in two of them: ready in one of them is ready.
    """
    ready: Mapping[str, set[str]] = defaultdict(set)
    known: Mapping[str, set[str]] = defaultdict(set)
    for slice_ in slices:
        family = str(slice_.get("addressType"))
        for endpoint in slice_.get("endpoints") or ():
            address = _address(endpoint)
            if address is None:
                continue
            known[family].add(address)
            if _is_ready(endpoint):
                ready[family].add(address)
    return Readiness(_largest(ready), _largest(known))


def _address(endpoint: JsonObject) -> str | None:
    """Give the first address: all addresses of one endpoint are the same endpoint."""
    addresses = endpoint.get("addresses")
    first = addresses[0] if isinstance(addresses, list) and addresses else None
    return first if isinstance(first, str) else None


def _is_ready(endpoint: JsonObject) -> bool:
    """True if the endpoint takes traffic. The API: an unset `ready` is to be read as true."""
    conditions = endpoint.get("conditions")
    return not isinstance(conditions, dict) or conditions.get("ready") is not False


def _largest(families: Mapping[str, set[str]]) -> int:
    return max(map(len, families.values()), default=0)
