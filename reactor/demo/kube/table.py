"""Tables for `kubectl get`: the columns upstream's printers show, for the kinds that the demo looks at."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from reactor.demo.kube.objects import JsonObject, encode, lookup
from reactor.demo.kube.reads import Page
from reactor.demo.kube.resources import Column, Resource
from reactor.demo.kube.store import Revision

_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_BUILT_IN: dict[str, tuple[Column, ...]] = {
    "pods": (Column("Status", ".status.phase"), Column("Node", ".spec.nodeName"), _AGE),
    "nodes": (
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Unschedulable", ".spec.unschedulable"),
        _AGE,
    ),
    "namespaces": (Column("Status", ".status.phase"), _AGE),
    "services": (Column("Type", ".spec.type"), Column("Cluster-IP", ".spec.clusterIP"), _AGE),
    "deployments": (Column("Desired", ".spec.replicas"), Column("Available", ".status.availableReplicas"), _AGE),
    "statefulsets": (Column("Desired", ".spec.replicas"), Column("Ready", ".status.readyReplicas"), _AGE),
    "leases": (Column("Holder", ".spec.holderIdentity"), _AGE),
    "endpointslices": (Column("AddressType", ".addressType"), Column("Endpoints", ".endpoints[*].addresses[0]"), _AGE),
    "poddisruptionbudgets": (
        Column("Min Available", ".spec.minAvailable"),
        Column("Max Unavailable", ".spec.maxUnavailable"),
        Column("Allowed Disruptions", ".status.disruptionsAllowed"),
        _AGE,
    ),
    "events": (
        Column("Last Seen", ".lastTimestamp", "date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", ".involvedObject.name"),
        Column("Message", ".message"),
    ),
}
_STEP = re.compile(r'\[\?\(@\.(\w+)==["\'](.*?)["\']\)\]|\[(\*|\d+)\]|\.?([\w-]+|"[^"]+")')
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


def wants_table(accept: str) -> bool:
    return "as=Table" in accept


def encode_rows(page: Page, resource: Resource, now: datetime) -> bytes:
    """Write a list as a table."""
    return encode(_table(page.items, resource, now, page.metadata))


def encode_row(revision: Revision, resource: Resource, now: datetime) -> bytes:
    """Write one object as a table."""
    metadata = {"resourceVersion": revision.value["metadata"]["resourceVersion"]}
    return encode(_table([revision], resource, now, metadata))


def _table(revisions: list[Revision], resource: Resource, now: datetime, metadata: JsonObject) -> JsonObject:
    columns = resource.columns or _BUILT_IN.get(resource.plural) or (_AGE,)
    if resource.custom and all(column.kind != "date" for column in columns):
        columns = (*columns, _AGE)
    named = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    # Dates are sent as ages: so are upstream's.
    named += [
        {"name": one.name, "type": "string" if one.kind == "date" else one.kind, "format": "", "description": "",
         "priority": one.priority}
        for one in columns
    ]  # fmt: skip
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": named,
        "rows": [_row(revision, columns, now) for revision in revisions],
    }


def _row(revision: Revision, columns: tuple[Column, ...], now: datetime) -> JsonObject:
    value = revision.value
    shown = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]}
    return {"cells": [value["metadata"]["name"], *(_cell(value, one, now) for one in columns)], "object": shown}


def _cell(value: JsonObject, column: Column, now: datetime) -> Any:
    found = [one for one in _walk([value], column.path) if one is not None]
    if column.kind == "date":
        return _age(found[0], now) if found else "<unknown>"
    if len(found) == 1 and column.kind in ("integer", "number", "boolean"):
        return found[0]
    flat = [str(part) for one in found for part in (one if isinstance(one, list) else [one])]
    return ",".join(flat) if flat else None if _is_number(column) else "<none>"


def _is_number(column: Column) -> bool:
    return column.kind in ("integer", "number", "boolean")


def _walk(values: list[Any], path: str) -> list[Any]:
    for key, wanted, index, name in _STEP.findall(path):
        if key:
            values = [item for one in values if isinstance(one, list) for item in one if item.get(key) == wanted]
        elif index == "*":
            values = [item for one in values if isinstance(one, list) for item in one]
        elif index:
            values = [one[int(index)] for one in values if isinstance(one, list) and len(one) > int(index)]
        else:
            values = [lookup(one, (name.strip('"'),)) for one in values]
    return values


def _age(text: str, now: datetime) -> str:
    seconds = max(0, int((now - datetime.fromisoformat(text)).total_seconds()))
    for unit, length in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
