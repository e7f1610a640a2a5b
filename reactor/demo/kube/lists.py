"""Lists of the API that are merged by key, and their keys.

Upstream says it in struct tags (`patchMergeKey`, `listMapKey`) and in CRDs (`x-kubernetes-list-type`). Everything not
named here is atomic: written as a whole, owned as a whole. That is the safe side, and it is the truth for the lists
that the reactor writes (TrafficSplit backends, HTTPRoute rules and backendRefs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.resources import Resource

Names = tuple[str, ...]
"""Field names from the root down; list items add nothing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Merge strategy of a field: `keys` for a list of objects with those keys, `whole` for anything atomic."""

    keys: Names = ()
    whole: bool = False
    members: bool = False
    """A list that is a set of scalars."""


PLAIN = Shape()
ATOMIC = Shape(whole=True)
SET = Shape(members=True)
Shapes = Callable[[Names], Shape]

# Longest suffix wins: `ports` has another key in a container than in a Service.
_BUILT_IN: dict[Names, Shape] = {
    ("metadata", "finalizers"): SET,
    ("metadata", "ownerReferences"): Shape(("uid",)),
    ("containers",): Shape(("name",)),
    ("initContainers",): Shape(("name",)),
    ("ephemeralContainers",): Shape(("name",)),
    ("env",): Shape(("name",)),
    ("volumes",): Shape(("name",)),
    ("volumeMounts",): Shape(("mountPath",)),
    ("imagePullSecrets",): Shape(("name",)),
    ("hostAliases",): Shape(("ip",)),
    ("topologySpreadConstraints",): Shape(("topologyKey", "whenUnsatisfiable")),
    ("containers", "ports"): Shape(("containerPort", "protocol")),
    ("initContainers", "ports"): Shape(("containerPort", "protocol")),
    ("spec", "ports"): Shape(("port", "protocol")),
    ("status", "conditions"): Shape(("type",)),
    ("status", "addresses"): Shape(("type",)),
    ("spec", "selector", "matchLabels"): PLAIN,
    ("spec", "selector"): ATOMIC,
}
_PATCH_ONLY: dict[Names, Shape] = {("spec", "taints"): Shape(("key",))}
"""Merged by key in a strategic merge patch only; server-side apply owns node taints as one."""


def _by_suffix(table: dict[Names, Shape], names: Names) -> Shape | None:
    return next((table[names[start:]] for start in range(len(names)) if names[start:] in table), None)


@lru_cache(maxsize=4096)
def patch_shape(names: Names) -> Shape:
    """Give the shape a strategic merge patch sees (built-in kinds only)."""
    return _by_suffix(_PATCH_ONLY, names) or _by_suffix(_BUILT_IN, names) or PLAIN


@lru_cache(maxsize=4096)
def _built_in_shape(names: Names) -> Shape:
    return _by_suffix(_BUILT_IN, names) or PLAIN


def shapes_of(resource: Resource) -> Shapes:
    """Give the shapes server-side apply sees for this kind."""
    schema = resource.schema
    if schema is None:
        return _built_in_shape
    return lambda names: _built_in_shape(names) if names[:1] == ("metadata",) else _in_schema(schema, names)


def _in_schema(schema: JsonObject, names: Names) -> Shape:
    node: JsonObject = schema
    for name in names:
        while "items" in node:
            node = node["items"]
        more = node.get("additionalProperties")
        node = (node.get("properties") or {}).get(name) or (more if isinstance(more, dict) else {})
    if node.get("x-kubernetes-map-type") == "atomic":
        return ATOMIC
    kind = node.get("x-kubernetes-list-type")
    if kind == "map":
        return Shape(tuple(node.get("x-kubernetes-list-map-keys") or ()))
    return SET if kind == "set" else PLAIN
