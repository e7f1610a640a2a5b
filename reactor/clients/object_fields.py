"""Fields of Kubernetes objects, read with care: anything may be missing, and then means what the API says it means."""

from __future__ import annotations

from typing import Any

from reactor.clients.kubernetes_port import JsonObject


class MalformedField(ValueError):
    """A field is not what the API says it is."""


def get(found: JsonObject, *path: str) -> Any:
    """Give the value at this place, None if there is none. Raises MalformedField."""
    value: Any = found
    for key in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise MalformedField(f"{'.'.join(path)}: there is no object around {key}")
        value = value.get(key)
    return value


def count(found: JsonObject, *path: str) -> int:
    """Give a whole number, 0 if there is none. Raises MalformedField."""
    value = get(found, *path)
    if value is None:
        return 0  # the API leaves out zeros
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedField(f"{'.'.join(path)} is {value!r}, no whole number")
    return value


def condition(found: JsonObject, kind: str) -> str | None:
    """Give a condition's status (`True`, `False`, `Unknown`), None where it is not there. Raises MalformedField."""
    conditions = get(found, "status", "conditions") or []
    if not isinstance(conditions, list):
        raise MalformedField("status.conditions is no list")
    return next(
        (str(one.get("status")) for one in conditions if isinstance(one, dict) and one.get("type") == kind), None
    )
