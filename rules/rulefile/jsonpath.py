"""Kubernetes' JSONPath, as far as it names values: fields, indexes, slices, wildcards, filters and recursive descent.

Read once, so that a rule file with a mistake in a path is refused; `range` and text around a path are not read.
Source: client-go util/jsonpath, with missing keys not allowed, as Karmada uses it for `statePreservation`.

What a path may cost is bounded: `..a..a..a` would look at each value of a deep object once for each way down to it.
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


VISITS_MAX = 20_000
"""Largest number of values that a path looks at in one object."""
TEXT_CHARACTERS = 4096
"""Largest number of characters that are read of a result: no label is as long."""


class NoValue(Exception):
    """The path leads nowhere in this value."""


class TooFar(NoValue):
    """The path looks at more than VISITS_MAX values."""


class Walk:
    """Budget of values that one reading may still look at."""

    def __init__(self) -> None:
        self._left = VISITS_MAX

    def visited(self, value: Any) -> Any:
        """Count a value, and give it back. Raises TooFar."""
        self._left -= 1
        if self._left < 0:
            raise TooFar(f"the path looks at more than {VISITS_MAX} values")
        return value


PathStep = Callable[[Any, Walk], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read."""

    text: str
    steps: tuple[PathStep, ...]

    def text_of(self, value: object) -> str:
        """Give the value at the path, as text; several values with a space between. Raises NoValue."""
        found = self.found_in(value, Walk())
        if not found:
            raise NoValue(f"{self.text} finds nothing")
        text = ""
        for one in found:
            text += " " * bool(text) + _text(one)
            if len(text) > TEXT_CHARACTERS:
                return text[:TEXT_CHARACTERS]
        return text

    def found_in(self, value: object, walk: Walk) -> list[Any]:
        """Give all values that the path names. Raises NoValue."""
        found = [value]
        for step in self.steps:
            found = [walk.visited(inner) for outer in found for inner in step(outer, walk)]
        return found


@lru_cache(maxsize=1024)
def read_jsonpath(text: str) -> JsonPath:
    """Read `.replicas`, `{.replicas}` or `{.conditions[?(@.type=="Ready")].status}`. Raises ValueError."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    inner = inner.removeprefix("$").removeprefix("@")
    steps: list[PathStep] = []
    at = 0
    while at < len(inner):
        token = _TOKENS.match(inner, at)
        if token is None:
            msg = f"{text!r} is no JSONPath from {inner[at:]!r} on: write a path such as {{.replicas}}"
            raise ValueError(msg)
        steps.append(_step(token))
        at = token.end()
    return JsonPath(text, tuple(steps))


def _step(token: re.Match[str]) -> PathStep:
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
            return lambda value, _: iter(_list(value)[int(begin or 0) : int(end) if end else None])
        case _:
            return _filter(read_jsonpath(given["left"]), given["is"], given["right"])


def _field(name: str) -> PathStep:
    def step(value: object, _: Walk) -> Iterator[Any]:
        if not isinstance(value, dict) or name not in value:
            raise NoValue(f"there is no {name}")
        yield value[name]

    return step


def _index(place: int) -> PathStep:
    def step(value: object, _: Walk) -> Iterator[Any]:
        items = _list(value)
        if not -len(items) <= place < len(items):
            raise NoValue(f"there is no item {place}")
        yield items[place]

    return step


def _all(value: object, _: Walk) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else _list(value)


def _deep(name: str) -> PathStep:
    def step(value: object, walk: Walk) -> Iterator[Any]:
        ahead = [value]  # not by recursion: an object may be deeper than Python's stack
        while ahead:
            one = walk.visited(ahead.pop())
            if isinstance(one, dict) and name in one:
                yield one[name]
            ahead += reversed([*one.values()] if isinstance(one, dict) else one if isinstance(one, list) else [])

    return step


def _filter(left: JsonPath, compare: str | None, right: str | None) -> PathStep:
    try:
        wanted = json.loads(f'"{right[1:-1]}"' if right and right[0] == "'" else right or "null")
    except ValueError as error:
        msg = f"{right} is no text in quotes, no number, true or false"
        raise ValueError(msg) from error

    def holds(item: object, walk: Walk) -> bool:
        try:
            found = left.found_in(walk.visited(item), walk)
            return compare is None or any(_COMPARE[compare](one, wanted) for one in found)
        except TooFar:
            raise
        except (NoValue, TypeError):  # it is not there, or of another kind than what it is compared with
            return False

    return lambda value, walk: (item for item in _list(value) if holds(item, walk))


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise NoValue("there is no list")
    return value


def _text(value: object) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    except RecursionError as error:
        raise NoValue("the value is nested too deep") from error
