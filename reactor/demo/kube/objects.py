"""JSON objects as the emulator keeps them, and the few walks that all modules need.

An object in the store is never changed in place: a write builds a new one that shares every untouched part with the
old. So a list of a thousand objects, an old revision for a stale read and a queued watch event all cost a pointer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

JsonObject = dict[str, Any]
NamespacedName = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""


def encode(value: object) -> bytes:
    """Write JSON the way the API server does: compact, UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def rfc3339(moment: datetime) -> str:
    """Write a time as `metav1.Time` does: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def lookup(value: object, path: Iterable[str]) -> Any:
    """Follow field names down; None where the way ends."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def clone(value: Any) -> Any:
    """Copy JSON that the caller may still change: a caller's dict before it enters the store."""
    if isinstance(value, dict):
        return {name: clone(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [clone(inner) for inner in value]
    return value


def without(value: JsonObject, *names: str) -> JsonObject:
    """Give the object without these fields."""
    return {name: inner for name, inner in value.items() if name not in names}


def key_of(value: JsonObject) -> NamespacedName:
    """Give the key under which the store keeps this object."""
    metadata = value["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
