"""Server-side apply and field ownership: who wrote what, who may overwrite whom.

After every write `metadata.managedFields` says which manager owns which leaf. An apply that would change a leaf of
another manager is a 409 that names the leaf, unless it is forced; a leaf that an applier stops naming, and that has no
other owner, goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reactor.demo.kube.errors import StatusError
from reactor.demo.kube.lists import Names, Shapes
from reactor.demo.kube.managed_fields import (
    Leaves,
    ManagedPath,
    decode_fields,
    drop,
    encode_fields,
    item_step,
    leaves,
    readable,
)
from reactor.demo.kube.objects import JsonObject

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Manager:
    """Writer and its operation: the identity of one entry of `managedFields`."""

    name: str
    operation: Literal["Apply", "Update"]
    api_version: str
    subresource: str = ""

    def owns(self, entry: JsonObject) -> bool:
        """Tell whether this entry is ours; an applier keeps its entry when it moves to another API version."""
        mine = (self.name, self.operation, self.subresource)
        if (entry["manager"], entry["operation"], entry.get("subresource", "")) != mine:
            return False
        return self.operation == "Apply" or entry["apiVersion"] == self.api_version

    def entry(self, paths: set[ManagedPath], time: str) -> JsonObject:
        written: JsonObject = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": encode_fields(paths),
        }
        return written | ({"subresource": self.subresource} if self.subresource else {})


def updated(before: JsonObject | None, after: JsonObject, manager: Manager, shapes: Shapes, time: str) -> JsonObject:
    """Give `after` with the writer owning every leaf it changed, and no owner for what is gone."""
    status = manager.subresource == "status"
    old = leaves(before, shapes, status=status) if before else {}
    new = leaves(after, shapes, status=status)
    changed = {path for path, value in new.items() if path not in old or old[path] != value}
    gone = old.keys() - new.keys()
    return with_owners(after, _entries(before), manager, taken=changed, lost=changed | gone, time=time)


def _entries(value: JsonObject | None) -> list[JsonObject]:
    return list(value["metadata"].get("managedFields") or []) if value else []


def with_owners(
    value: JsonObject,
    entries: Sequence[JsonObject],
    manager: Manager,
    *,
    taken: set[ManagedPath],
    lost: set[ManagedPath],
    time: str,
    only_taken: bool = False,
) -> JsonObject:
    """Write `managedFields`: `manager` takes paths, all others lose paths, unchanged entries stay as they are.

    `only_taken`: the manager owns exactly what it took (apply) instead of that in addition to what it had (update).
    """
    kept: list[JsonObject] = []
    mine: JsonObject | None = None
    for entry in entries:
        if manager.owns(entry):
            mine = entry
            continue
        had = decode_fields(entry["fieldsV1"])
        left = had - lost
        if left == had:
            kept.append(entry)
        elif left:
            kept.append({**entry, "fieldsV1": encode_fields(left)})
    had = decode_fields(mine["fieldsV1"]) if mine else set()
    has = taken if only_taken else (had - lost) | taken
    if mine and has == had:
        kept.append(mine)
    elif has:
        kept.append(manager.entry(has, time))
    kept.sort(key=lambda entry: (entry["operation"], entry["time"], entry["manager"]))
    metadata = {name: inner for name, inner in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": metadata | ({"managedFields": kept} if kept else {})}


def applied(
    live: JsonObject | None, wanted: JsonObject, manager: Manager, shapes: Shapes, *, force: bool, time: str
) -> JsonObject:
    """Merge what an applier wants into the live object, or refuse with the conflicts."""
    status = manager.subresource == "status"
    want = leaves(wanted, shapes, status=status)
    if live is None:
        return with_owners(wanted, [], manager, taken=set(want), lost=set(), time=time, only_taken=True)
    entries = _entries(live)
    conflicts = _conflicts(leaves(live, shapes, status=status), want, entries, manager)
    if conflicts and not force:
        raise _refused(conflicts)
    merged = _merge(live, wanted, (), shapes)
    others = [decode_fields(entry["fieldsV1"]) for entry in entries if not manager.owns(entry)]
    owned_before = [decode_fields(entry["fieldsV1"]) for entry in entries if manager.owns(entry)]
    abandoned = set().union(*owned_before) - want.keys() - set().union(*others)
    for path in sorted(abandoned, key=len):
        # Items before their fields, for without its key an item is not found. An item that still holds another writer's
        # fields stays; only its bare membership was ours.
        if not any(other[: len(path)] == path for paths in (*others, set(want)) for other in paths):
            merged = drop(merged, path)
    seized = {path for _, path in conflicts}
    return with_owners(merged, entries, manager, taken=set(want), lost=seized | abandoned, time=time, only_taken=True)


def _conflicts(
    now: Leaves, want: Leaves, entries: Sequence[JsonObject], manager: Manager
) -> list[tuple[JsonObject, ManagedPath]]:
    # An empty map asks for no more than to be there: it does not clear what others keep in it.
    there = {path[:length] for path in now for length in range(1, len(path) + 1)}
    changed = {
        path for path, value in want.items() if (path not in there if value == {} else now.get(path, _MISSING) != value)
    }
    return [
        (entry, path)
        for entry in entries
        if not manager.owns(entry)
        for path in sorted(decode_fields(entry["fieldsV1"]) & changed)
    ]


def _refused(conflicts: Sequence[tuple[JsonObject, ManagedPath]]) -> StatusError:
    def holder(entry: JsonObject) -> str:
        part = f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
        # An applier is the same manager in every API version, so upstream leaves its version out.
        version = f" using {entry['apiVersion']}" if entry["operation"] == "Update" else ""
        return f'"{entry["manager"]}"{part}{version}'

    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {holder(entry)}", "field": readable(path)}
        for entry, path in conflicts
    ]
    if len(conflicts) == 1:
        text = f"conflict with {holder(conflicts[0][0])}: {readable(conflicts[0][1])}"
    else:
        parts: dict[str, list[str]] = {}
        for entry, path in conflicts:
            parts.setdefault(holder(entry), []).append(f"\n- {readable(path)}")
        text = "\n".join(f"conflicts with {who}:{''.join(paths)}" for who, paths in parts.items())
    plural = "conflict" if len(conflicts) == 1 else "conflicts"
    return StatusError(
        409, "Conflict", f"Apply failed with {len(conflicts)} {plural}: {text}", details={"causes": causes}
    )


def _merge(live: Any, wanted: Any, names: Names, shapes: Shapes) -> Any:
    if isinstance(live, dict) and isinstance(wanted, dict) and not shapes(names).whole:
        merged = dict(live)
        for name, value in wanted.items():
            merged[name] = _merge(live.get(name), value, (*names, name), shapes)
        return merged
    if isinstance(live, list) and isinstance(wanted, list):
        shape = shapes(names)
        if shape.members:
            return [*live, *(item for item in wanted if item not in live)]
        if shape.keys:
            items = {item_step(item, shape.keys): item for item in live}
            for item in wanted:
                step = item_step(item, shape.keys)
                items[step] = _merge(items.get(step), item, names, shapes)
            return list(items.values())
    return wanted
