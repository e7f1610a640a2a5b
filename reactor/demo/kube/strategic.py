"""Strategic merge patch: a merge patch that knows which lists are merged by key. Built-in kinds only, as upstream."""

from __future__ import annotations

from typing import Any

from reactor.demo.kube.errors import bad_request
from reactor.demo.kube.lists import Names, patch_shape

_DELETE_PREFIX = "$deleteFromPrimitiveList/"


def strategic_merge(target: Any, patch: Any, names: Names = ()) -> Any:
    """Apply the patch, with the directives `$patch: replace|delete` and `$deleteFromPrimitiveList`."""
    if isinstance(patch, list):
        return _merge_list(target if isinstance(target, list) else [], patch, names)
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith(_DELETE_PREFIX):
            field = name.removeprefix(_DELETE_PREFIX)
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
        elif name.startswith("$"):
            continue  # element orders and retained keys say nothing that matters here
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(name, None)
        else:
            merged[name] = strategic_merge(merged.get(name), value, (*names, name))
    return merged


def _merge_list(target: list[Any], patch: list[Any], names: Names) -> list[Any]:
    shape = patch_shape(names)
    if shape.members:
        return [*target, *(item for item in patch if item not in target)]
    if not shape.keys:
        return patch
    if {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    key, merged = shape.keys[0], list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((index for index, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif at is None:
            merged.append(item)
        else:
            merged[at] = strategic_merge(merged[at], item, names)
    return merged
