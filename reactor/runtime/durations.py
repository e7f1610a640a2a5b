"""Lengths of time as people write them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Give a time as it is written on the command line: `1h30m`, `45s`; none is shorter than `0s`."""
    left, words = max(round(seconds), 0), ""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        number, left = divmod(left, size)
        words += f"{number}{unit}" if number else ""
    return words or "0s"
