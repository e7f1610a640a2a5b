"""The words of Prometheus' alerting rules, in ours: durations, labels and templates."""

from __future__ import annotations

import re
from typing import Any

_DURATION = re.compile(
    r"(?:(?P<y>\d+)y)?(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?(?:(?P<ms>\d+)ms)?"
)
"""Prometheus' own grammar (model.ParseDuration): each unit at most once, the longest first."""
_SECONDS = {"y": 365 * 86_400, "w": 7 * 86_400, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_LABEL = re.compile(r"\{\{-?\s*(?:\$labels|\.Labels)\.([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}")
_SPOKEN_OF = re.compile(r"(?:\$labels|\.Labels)\.([A-Za-z_][A-Za-z0-9_]*)")
_MESSAGE_CHARACTERS = 1900  # of the 2048 that a message may have: the rest is the words around it


class BadDuration(ValueError):
    """The text is no duration: says what one looks like."""


def seconds(text: object) -> float:
    """Read a duration of Prometheus (`1h30m`, `0`), in seconds. Raises BadDuration."""
    found = _DURATION.fullmatch(str(text))
    if str(text) == "0":
        return 0
    if found is None or not any(found.groups()):
        raise BadDuration(f"{text!r} is no duration: write 30s, 5m or 1h30m")
    total = sum(int(number) * _SECONDS[unit] for unit, number in found.groupdict().items() if number)
    return int(total) if total == int(total) else total


def mapping(found: object) -> dict[str, Any]:
    """Give labels or annotations; {} where there is no mapping."""
    return found if isinstance(found, dict) else {}


def fixed_labels(found: object) -> dict[str, str]:
    """Give the labels whose values no template makes."""
    return {str(key): str(value) for key, value in mapping(found).items() if "{{" not in str(value)}


def label_names(templates: object) -> frozenset[str]:
    """Give the labels of the series that these templates name."""
    return frozenset(name for text in mapping(templates).values() for name in _SPOKEN_OF.findall(str(text)))


def quoted(value: str) -> str:
    """Give the value of a matcher."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def as_message(annotations: object) -> str | None:
    """Give summary or description as our message; None where there is none, or only one that calculates."""
    for key in ("summary", "description"):
        text = _LABEL.sub(r"{\1}", str(mapping(annotations).get(key) or "")).strip()
        if text and "{{" not in text and len(text) <= _MESSAGE_CHARACTERS:
            return f"{text} ({{target}} is {{status}} since {{since}})"
    return None
