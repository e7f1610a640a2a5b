"""Moments as people write them on the command line. Pure: now is an argument."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_PART = re.compile(r"(\d+)([smhdw])")
_RELATIVE = re.compile(r"(?:now)?(?:-((?:\d+[smhdw])+))?|((?:\d+[smhdw])+)")
_UNIX = re.compile(r"\d{9,10}(?:\.\d+)?")
"""Seconds since 1970, from 1973 on: shorter numbers are a slip."""
_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


class BadMoment(ValueError):
    """The text is no valid time: says what one looks like."""


def moment(text: str, now: datetime) -> datetime:
    """Read RFC 3339 (`2026-11-01T00:00:00Z`), Unix seconds as promtool does, `now`, or a time before (`-30d`, `30d`).

    Raises BadMoment.
    """
    found = _RELATIVE.fullmatch(text)
    try:
        if text and found:
            ago = found[1] or found[2]
            return now - timedelta(seconds=seconds(ago) if ago else 0)
        if _UNIX.fullmatch(text):
            return datetime.fromtimestamp(float(text), UTC)
        read = datetime.fromisoformat(text) if _DATE_AND_TIME.match(text) else None
    except (ValueError, OverflowError) as error:
        raise BadMoment(f"{text!r}: {error}") from error
    if read is None:
        raise BadMoment(f"{text!r} is an invalid time: write 2026-11-01T00:00:00Z, -30d, -1h30m or now")
    if read.tzinfo is None:
        raise BadMoment(f"{text!r} has no time zone: write {text}Z for UTC, or an offset as in {text}+01:00")
    return read.astimezone(UTC)


def seconds(text: str) -> int:
    """Read a duration such as `90s` or `1h30m`, in seconds. Raises BadMoment."""
    if not text or _PART.sub("", text):
        raise BadMoment(f"{text!r} is no duration: write 30s, 5m, 1h30m, 7d or 2w")
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
