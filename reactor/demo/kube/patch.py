"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386), without touching what is patched.

Both build a new document that shares every untouched part with the old one. A JSON patch that cannot be carried out is
a 422 as upstream, a failed `test` included; one that is not a patch at all is a 400.
"""

from __future__ import annotations

from typing import Any

from reactor.demo.kube.errors import ApiError, bad_request, rejected_patch

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
        raise ApiError(413, "RequestEntityTooLarge", message)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise bad_request("json: a JSON patch operation must be an object")
    verb, path = operation.get("op"), _pointer(operation.get("path"))
    if verb in ("add", "replace", "test") and "value" not in operation:
        raise rejected_patch(f'{verb} operation: missing "value"')
    if verb == "add":
        return _set(document, path, operation["value"])
    if verb == "replace":
        _get(document, path)
        return _set(document, path, operation["value"], replace=True)
    if verb == "remove":
        return _remove(document, path)
    if verb == "test":
        # A missing field equals null: that is what upstream's library does.
        if not same(_get(document, path, default=None), operation["value"]):
            raise rejected_patch(f"testing value {operation['path']} failed: test failed")
        return document
    if verb in ("copy", "move"):
        source = _pointer(operation.get("from"))
        if verb == "move" and path[: len(source)] == source and len(path) > len(source):
            raise rejected_patch("move operation: cannot move a value into itself")
        value = _get(document, source)
        return _set(_remove(document, source) if verb == "move" else document, path, value)
    raise rejected_patch(f"Unexpected kind: {verb}")


def same(left: Any, right: Any) -> bool:
    """Compare as JSON does: unlike Python's, its true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise rejected_patch(f"not a JSON pointer: {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(step: str, *, end: int) -> int:
    """Read a list index from 0 to `end`; RFC 6901 knows neither signs nor leading zeros."""
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0") or int(step) > end:
        raise rejected_patch(f"Unable to access invalid index: {step}")
    return int(step)


def _get(document: Any, path: list[str], *, default: Any = _NOTHING) -> Any:
    for step in path:
        if isinstance(document, list):
            document = document[_index(step, end=len(document) - 1)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        elif default is not _NOTHING:
            return default
        else:
            raise rejected_patch(f"doc is missing path: /{'/'.join(path)}: missing value")
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
        raise rejected_patch(f"doc is missing path: {'/'.join(path)}: missing value")
    return {**document, step: _set(document[step], rest, value, replace=replace) if rest else value}


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise rejected_patch("the whole document cannot be removed")
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        at = _index(step, end=len(document) - 1)
        return [*document[:at], *([_remove(document[at], rest)] if rest else []), *document[at + 1 :]]
    if not isinstance(document, dict) or step not in document:
        raise rejected_patch(f"Unable to remove nonexistent key: {step}: missing value")
    if rest:
        return {**document, step: _remove(document[step], rest)}
    return {name: value for name, value in document.items() if name != step}
