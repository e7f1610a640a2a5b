"""Sets of field paths: who owns what, in the real `FieldsV1` format.

A path is a tuple of FieldsV1 steps: `f:spec`, `k:{"name":"web"}` for an item of a list with keys, `v:"x"` for a member
of a set. A leaf is whatever is written as a whole: a scalar, an empty object, an atomic list or map, and the mere
membership of a list item (written "." in FieldsV1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reactor.demo.kube.lists import Names, Shapes
from reactor.demo.kube.objects import JsonObject

ManagedPath = tuple[str, ...]
Leaves = dict[ManagedPath, Any]
MEMBER = object()
"""The value of a leaf that only says: this item is in the list."""

_SERVER_OWNED = frozenset(
    ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
     "deletionGracePeriodSeconds", "managedFields", "selfLink")
)  # fmt: skip


def leaves(value: JsonObject, shapes: Shapes, *, status: bool) -> Leaves:
    """Give every leaf that can have an owner: of the status alone, or of everything but the status."""
    if status:
        owned: JsonObject = {"status": value["status"]} if "status" in value else {}
    else:
        owned = {name: inner for name, inner in value.items() if name not in ("apiVersion", "kind", "status")}
        metadata = {name: inner for name, inner in owned.get("metadata", {}).items() if name not in _SERVER_OWNED}
        owned.pop("metadata", None)
        if metadata:
            owned["metadata"] = metadata
    return dict(_walk(owned, (), (), shapes)) if owned else {}


def _walk(value: Any, path: ManagedPath, names: Names, shapes: Shapes) -> Iterator[tuple[ManagedPath, Any]]:
    if isinstance(value, dict) and value and not shapes(names).whole:
        for name, inner in value.items():
            yield from _walk(inner, (*path, f"f:{name}"), (*names, name), shapes)
        return
    if isinstance(value, list) and value:
        shape = shapes(names)
        if shape.members:
            yield from (((*path, f"v:{json.dumps(item)}"), MEMBER) for item in value)
            return
        if shape.keys and all(isinstance(item, dict) for item in value):
            for item in value:
                inside = (*path, item_step(item, shape.keys))
                yield inside, MEMBER
                for name, inner in item.items():
                    yield from _walk(inner, (*inside, f"f:{name}"), (*names, name), shapes)
            return
    yield path, value


def item_step(item: JsonObject, keys: Names) -> str:
    """Name a list item by its keys; `protocol` defaults to TCP wherever it is one."""
    named = {key: item.get(key, "TCP" if key == "protocol" else None) for key in sorted(keys)}
    return "k:" + json.dumps(named, separators=(",", ":"))


def encode_fields(paths: set[ManagedPath]) -> JsonObject:
    """Write a set of paths as FieldsV1."""
    root: JsonObject = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        if path[-1].startswith("k:"):
            node["."] = {}
    return root


def decode_fields(fields: JsonObject, path: ManagedPath = ()) -> set[ManagedPath]:
    """Read FieldsV1 back."""
    found: set[ManagedPath] = set()
    for step, inner in fields.items():
        if step == ".":
            found.add(path)
        elif inner:
            found |= decode_fields(inner, (*path, step))
        else:
            found.add((*path, step))
    return found


def readable(path: ManagedPath) -> str:
    """Write a path as conflict messages do: `.spec.containers[name="web"].image`."""
    text = ""
    for step in path:
        if step.startswith("k:"):
            pairs = json.loads(step[2:]).items()
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs) + "]"
        else:
            text += f"[={step[2:]}]" if step.startswith("v:") else f".{step[2:]}"
    return text


def drop(value: Any, path: ManagedPath) -> Any:
    """Give the value without what is at this path, and without the maps and lists that are empty then."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and step.startswith("f:"):
        name = step[2:]
        if name not in value:
            return value
        left = drop(value[name], rest) if rest else None
        if left:
            return {**value, name: left}
        return {other: inner for other, inner in value.items() if other != name}
    if isinstance(value, list):
        kept = []
        for item in value:
            if not _is_item(item, step):
                kept.append(item)
            elif rest:
                kept.append(drop(item, rest))
        return kept
    return value


def _is_item(item: Any, step: str) -> bool:
    if step.startswith("v:"):
        return bool(item == json.loads(step[2:]))
    keys = json.loads(step[2:])
    return isinstance(item, dict) and item_step(item, tuple(keys)) == step
