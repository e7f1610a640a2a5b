"""Axis of time in pictures: all of one page have the same one, COLUMNS wide."""

from __future__ import annotations

from collections.abc import Callable

from rules.rehearsal.backtest.rule_story import COLUMNS

DIGITS = 4
"""Decimals: a quarter of a second in a month. Browsers keep no more of a number below 1,000."""

Axis = Callable[[float], float]
"""Second since 1970 to place."""


def axis(first: float, until: float) -> Axis:
    """Give the axis of a range; both in seconds since 1970."""
    return lambda second: round((second - first) / ((until - first) or 1.0) * COLUMNS, DIGITS)
