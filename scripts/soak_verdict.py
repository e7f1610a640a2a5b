"""Verdict on a soak: the linear trend of each figure after the warm-up, and whether it grows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WARM_UP = 0.3
"""The part of the run that is left out: caches fill, and every route moves for its first time."""
GROWTH_MAX = 0.05
"""A figure is flat where its trend over the rest of the run adds less than this part of it."""
FDS_MAX = 2.0
"""Descriptors come and go one by one: a trend of fewer over the rest of the run says nothing."""
UNREAD_MAX = 200
"""Facts: what a second or two brings."""
LATE_MAX = 2.0
"""Seconds beyond the window."""
COLUMNS = (
    ("minute", 6), ("rss MB", 8), ("fds", 5), ("nats MB", 8), ("nats fds", 8), ("unread", 7), ("moves", 6),
    ("slowest s", 9), ("missing", 7),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute's figures: memory in MB is the mean, descriptors are the most, of some looks."""

    minute: int
    rss: float
    fds: int
    nats_rss: float
    nats_fds: int
    unread: int
    """Facts behind their partitions' stored positions."""
    moves: int
    slowest: float
    """Seconds from the end of its window to the write, of the slowest move."""
    missing: int
    """Moves that did not come at all."""

    def row(self) -> str:
        """Give it as a line of the table."""
        values = (
            self.minute, self.rss, self.fds, self.nats_rss, self.nats_fds, self.unread, self.moves, self.slowest,
            self.missing,
        )  # fmt: skip
        return "  ".join(f"{value:>{width}}" for value, (_, width) in zip(values, COLUMNS, strict=True))


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of one figure after the warm-up."""

    name: str
    mean: float
    per_hour: float
    growth: float
    """Growth by the trend over the stretch that was looked at."""
    grows: bool
    judged: bool = True

    def __str__(self) -> str:
        word = "GROWS" if self.grows else "flat"
        word += "" if self.judged else " (not judged: it holds an index of what its streams keep, for a day or a month)"
        return f"{self.name}: mean {self.mean:.1f}, trend {self.per_hour:+.1f} an hour, {self.growth:+.2f} here: {word}"


def trends(minutes: Sequence[Minute]) -> list[Trend]:
    """Give the trends; none where fewer than three minutes are left after the warm-up."""
    rest = minutes[round(len(minutes) * WARM_UP) :]
    if len(rest) < 3:
        return []
    return [_trend(name, rest) for name in ("rss", "nats_rss", "fds", "nats_fds")]


def _trend(name: str, rest: Sequence[Minute]) -> Trend:
    at, values = [one.minute for one in rest], [float(getattr(one, name)) for one in rest]
    slope, _ = statistics.linear_regression(at, values)
    mean, growth = statistics.fmean(values), slope * (at[-1] - at[0])
    most = FDS_MAX if name.endswith("fds") else GROWTH_MAX * mean
    return Trend(name, mean, slope * 60, growth, grows=growth > most, judged=name != "nats_rss")


def verdict(minutes: Sequence[Minute]) -> list[str]:
    """Give everything that is not as it should be; nothing where all is flat and in time."""
    found = [
        f"{trend.name} grows by {trend.per_hour:.1f} an hour"
        for trend in trends(minutes)
        if trend.grows and trend.judged
    ]
    if not trends(minutes):
        found.append(f"{len(minutes)} minutes are too few to see a trend: give at least 5")
    found += [f"minute {one.minute}: {one.missing} moves are missing" for one in minutes if one.missing]
    found += [f"minute {one.minute}: a move was {one.slowest} s late" for one in minutes if one.slowest > LATE_MAX]
    # One look may come in the middle of a refresh; a backlog lasts longer.
    behind = max((min(one.unread, two.unread) for one, two in pairwise(minutes)), default=0)
    return [*found, f"{behind} facts stay unread"] if behind > UNREAD_MAX else found
