"""Overlap of two texts with placeholders: patterns and templates of targets, label selectors.

All answers are "could": a set of characters is taken for any character, so a no is sure and a yes is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from rules.rulefile.selectors import ParsedRequirement

T = TypeVar("T")
_PLACE = re.compile(r"\{[^{}]*\}")
_WILD = frozenset("*?[{")
_TOKEN = re.compile(r"\*|\?|\[[^\]]+\]|.", re.DOTALL)


def is_plain(text: str) -> bool:
    """True if it names one target: it has no wildcard or placeholder."""
    return not _WILD.intersection(text)


@lru_cache(maxsize=65_536)
def may_overlap(one: str, other: str) -> bool:
    """True if some target fits both. Each is a target, a pattern, or a template whose `{label}` may be any text."""
    if is_plain(one) and is_plain(other):
        return one == other
    ours, theirs = (_PLACE.sub("*", text).split("/") for text in (one, other))
    return _meet(ours, theirs, "**", _segments_meet)


def _segments_meet(one: str, other: str) -> bool:
    if one == other or one == "*" or other == "*":
        return True
    return _meet(_TOKEN.findall(one), _TOKEN.findall(other), "*", _characters_meet)


def _characters_meet(one: str, other: str) -> bool:
    return one == other or "?" in (one, other) or len(one) > 1 or len(other) > 1


def _meet(one: Sequence[T], other: Sequence[T], many: T, same: Callable[[T, T], bool]) -> bool:
    """True if some sequence fits both, where `many` matches any number of anything."""
    above: list[bool] = []
    for row in range(len(one) + 1):
        here = [False] * (len(other) + 1)
        for column in range(len(other) + 1):
            left, up = column > 0 and here[column - 1], row > 0 and above[column]
            here[column] = (
                (row == column == 0)
                or (row > 0 and one[row - 1] == many and (up or left))
                or (column > 0 and other[column - 1] == many and (up or left))
                or (row > 0 and column > 0 and above[column - 1] and same(one[row - 1], other[column - 1]))
            )
        above = here
    return above[-1]


def could_select_both(one: Iterable[ParsedRequirement], other: Iterable[ParsedRequirement]) -> bool:
    """True if some labels satisfy all requirements of both selectors."""
    by_key: dict[str, list[ParsedRequirement]] = {}
    for requirement in (*one, *other):
        by_key.setdefault(requirement[0], []).append(requirement)
    return all(_satisfiable(requirements) for requirements in by_key.values())


def _satisfiable(requirements: Sequence[ParsedRequirement]) -> bool:
    """True if one value, or none, can satisfy all of these requirements, which have one key."""
    operators = {operator for _, operator, _ in requirements}
    if "absent" in operators:
        return not operators & {"in", "exists"}
    wanted = [values for _, operator, values in requirements if operator == "in"]
    if not wanted:
        return True
    refused = [values for _, operator, values in requirements if operator == "notin"]
    return bool(frozenset.intersection(*wanted).difference(*refused))
