"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386), without touching what is patched.

Both build a new document that shares every untouched part with the old one. A JSON patch that cannot be carried out is
a 422 as upstream, a failed `test` included; one that is not a patch at all is a 400.
"""

from __future__ import annotations

from typing import Any

from reactor.demo.kube.errors import StatusError, bad_request, rejected_patch

OPERATIONS_MAX = 10_000  # maxJSONPatchOperations of the real API server
_NOTHING = object()


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch: null removes, objects merge, everything else (lists too) replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """Apply all operations in order, or none."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > OPERATIONS_MAX:
        message = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", message)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Any) -> Any:
    """Carry one operation out, as leniently as upstream's library does.

    A missing `value` is null, and so is a field that is not there, for `test`, `replace` and `copy`, as long as its
    parent is there. `remove` and `move` insist on it.
    """
    if not isinstance(operation, dict):
        raise bad_request("json: a JSON patch operation must be an object")
    verb, path, value = operation.get("op"), _pointer(operation.get("path")), operation.get("value")
    if verb == "add":
        return _set(document, path, value)
    if verb == "replace":
        return _set(document, path, value, replace=True)
    if verb == "remove":
        return _remove(document, path)
    if verb == "test":
        if not same(_get(document, path, default=None), value):
            raise rejected_patch()
        return document
    if verb in ("copy", "move"):
        source = _pointer(operation.get("from"))
        if verb == "move" and path[: len(source)] == source and len(path) > len(source):
            raise rejected_patch()
        value = _get(document, source, default=None) if verb == "copy" else _get(document, source)
        return _set(_remove(document, source) if verb == "move" else document, path, value)
    raise rejected_patch()


def same(left: Any, right: Any) -> bool:
    """Compare as upstream does, by what is written: true is not 1, and 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise rejected_patch()
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(step: str, *, end: int) -> int:
    """Read a list index from 0 to `end`; RFC 6901 knows neither signs nor leading zeros."""
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0") or int(step) > end:
        raise rejected_patch()
    return int(step)


def _get(document: Any, path: list[str], *, default: Any = _NOTHING) -> Any:
    """Give the value at a path. `default`: the value of a field that is missing where it could be."""
    for at, step in enumerate(path):
        if isinstance(document, list):
            document = document[_index(step, end=len(document) - 1)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, dict) and default is not _NOTHING and at == len(path) - 1:
            return default
        else:
            raise rejected_patch()
    return document


def _set(document: Any, path: list[str], value: Any, *, replace: bool = False) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        items = list(document)
        if rest or replace:
            at = _index(step, end=len(items) - 1)
            items[at] = _set(items[at], rest, value, replace=replace)
        else:
            items.insert(len(items) if step == "-" else _index(step, end=len(items)), value)
        return items
    if not isinstance(document, dict) or (rest and step not in document):
        raise rejected_patch()
    return {**document, step: _set(document[step], rest, value, replace=replace) if rest else value}


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise rejected_patch()
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        at = _index(step, end=len(document) - 1)
        return [*document[:at], *([_remove(document[at], rest)] if rest else []), *document[at + 1 :]]
    if not isinstance(document, dict) or step not in document:
        raise rejected_patch()
    if rest:
        return {**document, step: _remove(document[step], rest)}
    return {name: value for name, value in document.items() if name != step}
