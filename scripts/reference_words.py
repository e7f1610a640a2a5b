"""Words of the tables in docs/reference/: the type, the default and the meaning of a key, by its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]
HEAD = "| key | type | default | example | meaning |\n| --- | --- | --- | --- | --- |"
"""The first lines of each table."""
UNITS = {"seconds": "seconds", "bytes": "bytes", "percent": "percent", "persecond": "per second"}
"""Endings of the names of numbers, and their units."""


def row(key: str, of_type: str, default: str, example: str, meaning: str) -> str:
    """Give one line of a table; `example` is YAML, or empty."""
    shown = f"`{example}`" if example else ""
    return f"| `{key}` | {escaped(of_type)} | {default} | {escaped(shown)} | {escaped(meaning)} |"


def escaped(text: str) -> str:
    """A bar would end the cell."""
    return text.replace("|", "\\|")


def anchor(heading: str) -> str:
    """Give the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def default(schema: Schema, *, required: bool) -> str:
    """Give the default of a key in a few words."""
    value = schema.get("default")
    if required:
        return "required"
    if value is None:
        return "none"
    if value in ([], {}, ""):
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict) and ("$ref" in schema or "oneOf" in schema or "anyOf" in schema):
        return "its defaults"
    if isinstance(value, float) and value.is_integer():
        return f"`{int(value)}`"
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def type_of(schema: Schema, link: Callable[[str], str | Schema], key: str = "") -> str:
    """Give a JSON Schema type in a few words. `link` gives of a definition's name its link, or what it consists of."""
    if "$ref" in schema:
        linked = link(schema["$ref"].rpartition("/")[2])
        return linked if isinstance(linked, str) else type_of(linked, link, key)
    if members := schema.get("anyOf") or schema.get("oneOf"):
        words = (type_of(one, link, key) for one in members if one.get("type") != "null")
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{word}`" if word else "empty" for word in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return f"list of {type_of(schema.get('items', {}), link, key)}"
        case "object":
            by_pattern = schema.get("patternProperties", {}).values()
            values = schema.get("additionalProperties") or next(iter(by_pattern), None)
            return f"mapping to {type_of(values, link, key)}" if isinstance(values, dict) and values else "mapping"
        case "number" | "integer" as kind:
            return _number(schema, "whole number" if kind == "integer" else "number", key)
        case "boolean":
            return "`true`, `false`"
        case "string":
            return _text(schema)
    return "anything"


def _text(schema: Schema) -> str:
    formats = {"path": "path", "file-path": "path", "uri": "URL", "date-time": "time", "password": "secret text"}
    if word := formats.get(schema.get("format", "")):
        return word
    longest = schema.get("maxLength")
    return f"text, at most {longest:,}" if longest else "text"


def _number(schema: Schema, what: str, key: str) -> str:
    unit = next((word for end, word in UNITS.items() if key.lower().endswith(end)), "")
    what = f"{what} ({unit})" if unit else what
    low, high = schema.get("minimum"), schema.get("maximum")
    if (above := schema.get("exclusiveMinimum")) is not None:
        return f"{what}, more than {above:g}" + (f" to {high:,}" if high is not None else "")
    return f"{what}, {low:g} to {high:,}" if low is not None and high is not None else what
