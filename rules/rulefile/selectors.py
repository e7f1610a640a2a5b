"""Kubernetes label selectors, read once and matched often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_KEY = r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)\Z")
_COMPARE = re.compile(rf"({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9._-]*)\Z")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})\Z")
_COMMA = re.compile(r",(?![^()]*\))")


class BadSelector(ValueError):
    """The text is not a label selector."""


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """True if the selector matches the labels. Raises BadSelector."""
    return all(holds(requirement, labels) for requirement in parsed(selector))


def wanted_label(selector: str) -> tuple[str, str] | None:
    """Give a label, key and value, that all have which are selected; None: the selector names none."""
    for key, operator, values in parsed(selector):
        if operator == "in" and len(values) == 1:
            return key, min(values)
    return None


ParsedRequirement = tuple[str, str, frozenset[str]]
"""Key, operator (in, notin, exists, absent) and values."""


@lru_cache(maxsize=16_384)
def parsed(selector: str) -> tuple[ParsedRequirement, ...]:
    """Give the requirements as (key, operator, values). Raises BadSelector."""
    parts = [part.strip() for part in _COMMA.split(selector)]
    if not all(parts):
        raise BadSelector(f"{selector!r}: nothing is before or after a comma; an empty selector selects everything")
    return tuple(_requirement(part, selector) for part in parts)


def _requirement(text: str, selector: str) -> ParsedRequirement:
    if found := _SET.match(text):
        return found[1], found[2], frozenset(value.strip() for value in found[3].split(","))
    if found := _COMPARE.match(text):
        return found[1], "notin" if found[2] == "!=" else "in", frozenset({found[3]})
    if found := _EXISTS.match(text):
        return found[2], "absent" if found[1] else "exists", frozenset()
    raise BadSelector(f"{selector!r}: {text!r} is no requirement of a label selector")


def holds(requirement: ParsedRequirement, labels: Mapping[str, str]) -> bool:
    """True if labels satisfy one requirement."""
    key, operator, values = requirement
    if operator == "in":
        return labels.get(key) in values
    if operator == "notin":
        return labels.get(key) not in values
    return (key in labels) == (operator == "exists")
