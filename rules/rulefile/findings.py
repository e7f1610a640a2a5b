"""Sentences for the author of a rule file, made from validation errors."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from rules.core.errors import Problem
from rules.rulefile.yaml import Document, Path

_KINDS = {
    "float_type": "a number", "int_type": "a whole number", "int_from_float": "a whole number",
    "string_type": "text", "bool_type": "true or false", "tuple_type": "a list", "list_type": "a list",
    "dict_type": "a mapping", "mapping_type": "a mapping", "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}  # fmt: skip
_SAYS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda c: f"must be {_number(c['ge'])} or more",
    "greater_than": lambda c: f"must be more than {_number(c['gt'])}",
    "less_than_equal": lambda c: f"must be {_number(c['le'])} or less",
    "less_than": lambda c: f"must be less than {_number(c['lt'])}",
    "literal_error": lambda c: f"must be {c['expected']}",
    "enum": lambda c: f"must be {c['expected']}",
    "union_tag_invalid": lambda c: f"must be one of {c['expected_tags']}",
    "too_short": lambda c: f"needs at least {c['min_length']} entries",
    "too_long": lambda c: f"takes at most {c['max_length']} entries",
    "string_too_short": lambda _: "must not be empty",
    "string_too_long": lambda c: f"must be at most {c['max_length']} characters long",
    "string_pattern_mismatch": lambda c: f"must match {c['pattern']}",
    "value_error": lambda c: str(c["error"]),
}


def problems(document: Document, at: Path, errors: Sequence[ErrorDetails], model: Any) -> Iterator[Problem]:
    """Give one problem for each place that has any, in the order of the file."""
    seen: set[Path] = set()
    locations = [error["loc"] for error in errors]
    for error in errors:
        inside = len(error["loc"])
        if error["type"] == "too_short" and any(
            len(other) > inside and other[:inside] == error["loc"] for other in locations
        ):
            continue  # pydantic counts only the entries that are right
        path, key = _path(document, at, error)
        if (where := (*path, key) if key else path) in seen:
            continue  # a union says the same place once for each of its members
        seen.add(where)
        message = sentence(error, key, model)
        if key is not None and error["type"] == "extra_forbidden":
            line, column = document.keys.get(where, document.places.get(path, (1, 1)))
            yield Problem(document.file, line, column, document.problem(where, "").path, message)
        else:
            yield document.problem(where, message)


def near_tag(error: ErrorDetails) -> str | None:
    """The kind that is meant by one that is misspelled; None: it is something else, or cannot be told."""
    if error["type"] != "union_tag_invalid" or _tag(error) != "kind" or not isinstance(error.get("input"), dict):
        return None
    given = str(error["input"].get("kind"))
    known = {tag.strip("' ").lower(): tag.strip("' ") for tag in error["ctx"]["expected_tags"].split(",")}
    found = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.6)
    return known[found[0]] if found else None


def _path(document: Document, at: Path, error: ErrorDetails) -> tuple[Path, str | None]:
    """Give the place in the document: pydantic's own path also names union members, which are not in the document."""
    path = at
    location = list(error["loc"])
    key = None
    if error["type"] in ("missing", "extra_forbidden") and location:
        key = str(location.pop())
    for part in location:
        if (*path, part) in document.places:
            path = (*path, part)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = _tag(error)
        key = tag if (*path, tag) not in document.places else None
        path = path if key else (*path, tag)
    return path, key


def _tag(error: ErrorDetails) -> str:
    """The key that says which member of a union is meant: kind, provider."""
    return str(error.get("ctx", {}).get("discriminator", "kind")).strip("'")


def sentence(error: ErrorDetails, key: str | None, model: Any) -> str:
    """Say what is wrong. `key`: the one that is unknown or not there; `model`: whose keys may have been meant."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("missing", "union_tag_not_found"):
        return "required, and not there"
    if kind == "extra_forbidden":
        others = [one for one in _keys(model) if one != key]  # it may be a key of something else
        near = difflib.get_close_matches(str(key), others, n=1, cutoff=0.6)
        return "unknown key" + (f"; did you mean {near[0]}?" if near else "")
    value = error.get("input")
    given = _given(value.get(_tag(error)) if kind == "union_tag_invalid" and isinstance(value, dict) else value)
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}, got {given}"
    text = _SAYS[kind](context) if kind in _SAYS else error["msg"]
    if (meant := near_tag(error)) is not None:
        return f"{text}, got {given}; did you mean {meant}?"
    return text if kind == "value_error" else f"{text}, got {given}"


def _given(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "…")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "nothing"}[value]
    if isinstance(value, (int, float)):
        return _number(value)
    return "a list" if isinstance(value, list) else "a mapping"


def _number(value: float) -> str:
    """A number as people write it, with all its digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _keys(model: Any) -> list[str]:
    """All keys of these models and their parts: enough to guess what was meant."""
    out: list[str] = []
    todo, done = [model], set()
    while todo:
        item = todo.pop()
        if id(item) in done:
            continue
        done.add(id(item))
        if isinstance(item, type) and issubclass(item, BaseModel):
            out += [field.alias or name for name, field in item.model_fields.items()]
            todo += [field.annotation for field in item.model_fields.values()]
        else:
            todo += getattr(item, "__args__", ())
    return out
