"""Range of a PromQL expression, and whether it has a result without traffic. Read, not evaluated."""

from __future__ import annotations

import re

_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
_COMMENT = re.compile(r"#[^\n]*")
_RANGE = re.compile(r"\[\s*([0-9a-z]+)\s*(:[^\]]*)?\]")
_OFFSET = re.compile(r"\boffset\s+([0-9a-z]+)")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_RATE = re.compile(r"\b(rate|irate|increase|delta|idelta)\s*\(")


def _bare(query: str) -> str:
    """The expression without its texts and comments."""
    return _COMMENT.sub("", _TEXT.sub('""', query))


def seconds_of(duration: str) -> float:
    """Give a duration of PromQL (`1m30s`) in seconds; 0 of what is none."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def range_seconds(query: str) -> float:
    """Give how far back the expression looks: its longest range, more by its subqueries and its longest offset."""
    text = _bare(query)
    found = _RANGE.findall(text)
    plain = max((seconds_of(length) for length, resolution in found if not resolution), default=0.0)
    subqueries = sum(seconds_of(length) for length, resolution in found if resolution)
    return plain + subqueries + max((seconds_of(length) for length in _OFFSET.findall(text)), default=0.0)


def is_ratio_of_rates(query: str) -> bool:
    """True if it divides a rate by a rate: 0/0 where there are no requests."""
    over, slash, under = _bare(query).partition("/")
    return bool(slash and _RATE.search(over) and _RATE.search(under))


def reads_a_rate(query: str) -> bool:
    """True if it has a rate of a counter, which is 0 or no series at all once nothing is counted."""
    return _RATE.search(_bare(query)) is not None
