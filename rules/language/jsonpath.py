"""Kubernetes' JSONPath, as far as it names values: fields, indexes, slices, wildcards, filters and recursive descent.

Read once, so that a rule file with a mistake in a path is refused; `range` and text around a path are not read.
Source: client-go util/jsonpath, with missing keys not allowed, as Karmada uses it for `statePreservation`.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_NAME = r"(?:[A-Za-z0-9_\-/]|\\.)+"
_TOKENS = re.compile(
    rf"""\.\.(?P<deep>{_NAME}) | \.(?P<field>{_NAME}) | (?P<all>\.\*|\[\*\])
    | \[\s*'(?P<single>[^']*)'\s*\] | \[\s*"(?P<double>[^"]*)"\s*\]
    | \[\s*(?P<index>-?\d+)\s*\] | \[\s*(?P<slice>-?\d*:-?\d*)\s*\]
    | \[\?\(\s*@(?P<left>(?:\.{_NAME}|\[\s*'[^']*'\s*\])*)
      \s*(?:(?P<is>==|!=|<=|>=|<|>)\s*(?P<right>[^\)]+?)\s*)?\)\]""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class NoValue(Exception):
    """The path leads nowhere in this value."""


Step = Callable[[Any], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read."""

    text: str
    steps: tuple[Step, ...]

    def text_of(self, value: object) -> str:
        """Give what stands there, as text; several values with a space between. Raises NoValue."""
        found = [value]
        for step in self.steps:
            found = [inner for outer in found for inner in step(outer)]
        if not found:
            raise NoValue(f"{self.text} finds nothing")
        return " ".join(map(_text, found))


@lru_cache(maxsize=1024)
def read(text: str) -> JsonPath:
    """Read `.replicas`, `{.replicas}` or `{.conditions[?(@.type=="Ready")].status}`. Raises ValueError."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    inner = inner.removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    at = 0
    while at < len(inner):
        token = _TOKENS.match(inner, at)
        if token is None:
            msg = f"{text!r} is no JSONPath from {inner[at:]!r} on: write a path such as {{.replicas}}"
            raise ValueError(msg)
        steps.append(_step(token))
        at = token.end()
    return JsonPath(text, tuple(steps))


def _step(token: re.Match[str]) -> Step:
    kind, given = token.lastgroup, token.groupdict()
    match kind:
        case "field":
            return _field(re.sub(r"\\(.)", r"\1", given["field"]))
        case "single" | "double":
            return _field(given[kind])
        case "deep":
            return _deep(given["deep"])
        case "all":
            return _all
        case "index":
            return _index(int(given["index"]))
        case "slice":
            begin, _, end = given["slice"].partition(":")
            return lambda value: iter(_list(value)[int(begin or 0) : int(end) if end else None])
        case _:
            return _filter(read(given["left"]), given["is"], given["right"])


def _field(name: str) -> Step:
    def step(value: object) -> Iterator[Any]:
        if not isinstance(value, dict) or name not in value:
            raise NoValue(f"there is no {name}")
        yield value[name]

    return step


def _index(place: int) -> Step:
    def step(value: object) -> Iterator[Any]:
        items = _list(value)
        if not -len(items) <= place < len(items):
            raise NoValue(f"there is no item {place}")
        yield items[place]

    return step


def _all(value: object) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else _list(value)


def _deep(name: str) -> Step:
    def step(value: object) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from step(inner)

    return step


def _filter(left: JsonPath, compare: str | None, right: str | None) -> Step:
    try:
        wanted = json.loads(f'"{right[1:-1]}"' if right and right[0] == "'" else right or "null")
    except ValueError as error:
        msg = f"{right} is no text in quotes, no number, true or false"
        raise ValueError(msg) from error

    def holds(item: object) -> bool:
        found = [item]
        try:
            for step in left.steps:
                found = [inner for outer in found for inner in step(outer)]
            return compare is None or any(_COMPARE[compare](one, wanted) for one in found)
        except (NoValue, TypeError):  # it is not there, or of another kind than what it is compared with
            return False

    return lambda value: (item for item in _list(value) if holds(item))


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise NoValue("there is no list")
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
