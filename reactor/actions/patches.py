"""The one JSON Patch that a carrier sends: nothing but weights and our annotations, and only onto what was read.

Lists of backends are atomic for server-side apply and merge patches (either would make us owner of the whole list), so
single weights are replaced by position, each behind a `test` of the name that was read at that position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reactor.actions.annotations import notes_of
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.route_entries import WEIGHT_MAX, RouteEntry
from reactor.clients.route_entries import escape as escape


def changes(entries: Sequence[RouteEntry], weights: Mapping[str, int]) -> list[JsonObject]:
    """Give the operations that bring every entry of the named services to its weight; none where all have it.

    Raises Declined: BackendMissing where a service has no entry (any more), Invalid where a weight is out of range.
    """
    if missing := sorted(set(weights) - {entry.service for entry in entries}):
        have = ", ".join(entry.service for entry in entries) or "none"
        raise Declined("BackendMissing", f"the route has no backend {', '.join(missing)}; it has: {have}")
    if wrong := [f"{name}={weight}" for name, weight in weights.items() if not 0 <= weight <= WEIGHT_MAX]:
        raise Declined("Invalid", f"weights must be 0 to {WEIGHT_MAX}, got {', '.join(wrong)}")
    managed = [(entry, weights[entry.service]) for entry in entries if entry.service in weights]
    if all(entry.has_weight(weight) for entry, weight in managed):
        return []
    return [
        operation
        for entry, weight in managed
        # A quantity string that means the same goes as well: beside our numbers it fails v1alpha2's schema.
        if not entry.has_weight(weight) or isinstance(entry.weight, str)
        for operation in _change(entry, weight)
    ]


def _change(entry: RouteEntry, weight: int) -> Iterable[JsonObject]:
    for field, value in entry.tests:
        yield {"op": "test", "path": f"{entry.at}/{field}", "value": value}
    yield {"op": "add" if entry.weight is None else "replace", "path": f"{entry.at}/{entry.field}", "value": weight}


def patch(
    obj: JsonObject, operations: Sequence[JsonObject], *, write: Mapping[str, str], remove: Iterable[str] = ()
) -> list[JsonObject]:
    """Put the operations behind the version that was read, and add what is to be noted on the object."""
    version = obj.get("metadata", {}).get("resourceVersion")
    head = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}] if version is not None else []
    return [*head, *operations, *_notes(obj, write, remove)]


def _notes(obj: JsonObject, write: Mapping[str, str], remove: Iterable[str]) -> Iterable[JsonObject]:
    known = notes_of(obj)
    if write and not known:
        yield {"op": "add", "path": "/metadata/annotations", "value": dict(write)}
        return
    for key, value in write.items():
        if known.get(key) != value:
            yield {"op": "add", "path": f"/metadata/annotations/{escape(key)}", "value": value}
    for key in remove:
        if key in known:
            yield {"op": "remove", "path": f"/metadata/annotations/{escape(key)}"}
