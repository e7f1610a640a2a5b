"""Samples that a curve keeps one by one: those around each change of a target's health.

The rest of a curve is folded into columns, each ten minutes of a week. Near an outage of eight minutes that is too
coarse to show when the metric rose, and when the rule saw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor

NEAR_SECONDS = 900.0
"""Seconds before and after each change: a quarter of an hour, or less where SAMPLES_MAX does not allow it to so
many."""
SAMPLES_MAX = 400
"""Most points in time that are kept of one curve: 28 KB of the page where all values differ, beside 40 KB of columns.
30 s apart, that is three outages with a quarter of an hour around them."""
POINTS_MIN = 2
"""On either side of a change: with fewer no step is seen. Changes after the first 80 are drawn as columns then."""

NearSpan = tuple[float, float]
"""From, and up to without; seconds since 1970."""


def near_spans(changes: Iterable[float], step: float) -> tuple[NearSpan, ...]:
    """Give the times that are kept, sorted and apart, all on the points of a query. `step`: seconds between these."""
    moments = sorted(set(changes))[: SAMPLES_MAX // (2 * POINTS_MIN + 1)]
    if not moments:
        return ()
    each = SAMPLES_MAX // len(moments)
    points = max(POINTS_MIN, min(floor(NEAR_SECONDS / step), (each - 1) // 2))  # one is between the two sides
    return tuple(_joined(moments, points, step))


def _joined(moments: Iterable[float], points: int, step: float) -> Iterator[NearSpan]:
    since = until = None
    for moment in moments:
        begin, end = (floor(moment / step) - points) * step, (ceil(moment / step) + points) * step
        if since is None or until is None:
            since = begin
        elif begin > until:
            yield since, until
            since = begin
        until = end
    if since is not None and until is not None:
        yield since, until
