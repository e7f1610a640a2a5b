"""Structural schemas of custom resources: prune what is unknown, fill in defaults, say what is wrong.

The part of OpenAPI v3 that CRDs really use. Not here: `x-kubernetes-validations` (CEL) and `oneOf`/`anyOf`/`not`, so an
object that passes may still be refused by a real server; one that is refused here is refused there too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2

from reactor.demo.kube.errors import FieldError
from reactor.demo.kube.objects import JsonObject, clone

_IMPLIED = ("apiVersion", "kind", "metadata")
"""Fields of every object (and embedded object) that a schema need not mention."""


def shaped(schema: Mapping[str, Any], value: Any, dropped: list[str], path: str = "", *, root: bool = True) -> Any:
    """Give the value without unknown fields and with defaults; the paths of unknown fields go to `dropped`."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [shaped(items, item, dropped, f"{path}[{at}]", root=False) for at, item in enumerate(value)]
    if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
        return int(value)
    if not isinstance(value, dict):
        return value
    known: Mapping[str, Any] = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    keep_all = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or more is True
    whole = root or schema.get("x-kubernetes-embedded-resource")
    kept: JsonObject = {}
    for name, inner in value.items():
        below = f"{path}.{name}".lstrip(".")
        if whole and name in _IMPLIED:
            kept[name] = inner
        elif name in known:
            if inner is not None or known[name].get("nullable"):  # else it asks for the default, or for nothing
                kept[name] = shaped(known[name], inner, dropped, below, root=False)
        elif isinstance(more, dict):
            if inner is not None or more.get("nullable"):
                kept[name] = shaped(more, inner, dropped, below, root=False)
        elif keep_all:
            kept[name] = inner
        else:
            dropped.append(below)
    for name, inner in known.items():
        if "default" in inner and name not in kept:
            kept[name] = shaped(inner, clone(inner["default"]), [], root=False)
    return kept


def problems(schema: Mapping[str, Any], value: Any, path: str = "") -> Iterator[FieldError]:
    """Say everything that is wrong with the value."""
    if value is None and (schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields")):
        return
    expected = _expected(schema)
    if expected and _type_of(value) not in expected:
        wanted = "integer,string" if len(expected) > 2 else schema["type"]
        text = f'Invalid value: "{_type_of(value)}": {path} in body must be of type {wanted}: "{_type_of(value)}"'
        yield FieldError(path, "FieldValueTypeInvalid", text)
        return
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(f'"{one}"' for one in schema["enum"])
        yield FieldError(path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {known}')
    if isinstance(value, str):
        yield from _text_problems(schema, value, path)
    elif isinstance(value, list):
        yield from _list_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, path)
    elif value is not None and not isinstance(value, bool):
        yield from _limits(schema, value, value, path, "minimum", "maximum", "")


def _expected(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string", "int-or-string")
    kind = schema.get("type")
    return () if kind is None else ("integer", "number") if kind == "number" else (kind,)


def _type_of(value: Any) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _limits(
    schema: Mapping[str, Any], value: Any, measure: float, path: str, low: str, high: str, unit: str
) -> Iterator[FieldError]:
    if low in schema and measure < schema[low]:
        text = f"Invalid value: {value}: {path} in body should be greater than or equal to {schema[low]}{unit}"
        yield FieldError(path, "FieldValueInvalid", text)
    if high in schema and measure > schema[high]:
        text = f"Invalid value: {value}: {path} in body should be less than or equal to {schema[high]}{unit}"
        yield FieldError(path, "FieldValueInvalid", text)


def _text_problems(schema: Mapping[str, Any], value: str, path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minLength", 0):
        text = f'Invalid value: "{value}": {path} in body should be at least {schema["minLength"]} chars long'
        yield FieldError(path, "FieldValueInvalid", text)
    if len(value) > schema.get("maxLength", len(value)):
        text = f"Too long: may not be more than {schema['maxLength']} bytes"
        yield FieldError(path, "FieldValueTooLong", text)
    pattern = schema.get("pattern")
    if pattern and not _compiled(pattern).search(value):
        yield FieldError(
            path, "FieldValueInvalid", f"Invalid value: \"{value}\": {path} in body should match '{pattern}'"
        )


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)  # Go's own dialect, and linear on hostile input


def _list_problems(schema: Mapping[str, Any], value: list[Any], path: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxItems", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        yield FieldError(path, "FieldValueTooMany", text)
        return
    yield from _limits(schema, len(value), len(value), path, "minItems", "maxItems", " items")
    keys = schema.get("x-kubernetes-list-map-keys")
    seen: list[Any] = []
    for at, item in enumerate(value):
        here = f"{path}[{at}]"
        yield from problems(schema.get("items") or {}, item, here)
        if schema.get("x-kubernetes-list-type") in ("map", "set"):
            identity = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
            if identity in seen:
                text = json.dumps(identity, separators=(",", ":"))
                yield FieldError(here, "FieldValueDuplicate", f"Duplicate value: {text}")
            seen.append(identity)


def _object_problems(schema: Mapping[str, Any], value: JsonObject, path: str) -> Iterator[FieldError]:
    for name in schema.get("required") or ():
        if name not in value:
            yield FieldError(f"{path}.{name}".lstrip("."), "FieldValueRequired", "Required value")
    known: Mapping[str, Any] = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, inner in value.items():
        below = known.get(name) or (more if isinstance(more, dict) else None)
        if below is not None:
            yield from problems(below, inner, f"{path}.{name}".lstrip("."))
