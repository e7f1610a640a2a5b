"""JSON that nearly is what it should be: a seed with some of its values replaced, as the fuzzer's bytes say.

Mutated bytes are hardly ever JSON, and what reads them (pydantic, in Rust) shows the fuzzer no coverage. So half of the
inputs are edits of a seed instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**64, -(2**63) - 1, 10**400, 0.1, 1e308, "", "\0", "\u202e", "\x1b[2J", "\ud800",
    "é" * 300, "x" * 5000, "9" * 20, "*", "a.b", ">", "../..", "{{x}}", [], [[]], {}, {"a": {}}, ["x"] * 100,
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-01-01T00:00:00+99:99", "2026-01-01", "Unhealthy",
    "service/a/b/c",
)  # fmt: skip
EDITS_MAX = 24


def edited(value: Any, edits: bytes) -> Any:
    """Give the value with edits. Each is three bytes: which part, what is done with it, and by what it is replaced."""
    for at in range(0, min(len(edits), 3 * EDITS_MAX) - 2, 3):
        where, what, by = edits[at : at + 3]
        places = [*_places(value)]
        if not places:
            break
        holder, key = places[where % len(places)]
        if what % 8 == 0:
            del holder[key]
        elif what % 8 == 1 and isinstance(holder, dict):
            holder[str(by)] = deepcopy(ODD[by % len(ODD)])
        elif what % 8 == 2:
            holder[key] = edits[at:].decode("utf-8", "replace")
        else:
            holder[key] = deepcopy(ODD[by % len(ODD)])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    ahead = [value]
    while ahead:
        holder = ahead.pop()
        keys = [*holder] if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else []
        for key in keys:
            yield holder, key
            ahead.append(holder[key])
