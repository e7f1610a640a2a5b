"""The trade of a sweep, as SVG text: how long a reaction takes against how many are false."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Point = tuple[float, float]
LETTER, LINE = 8.0, 13.0
"""Width of a digit, and its height, with the space around it."""
POINTS_MIN = 2
"""Least points to draw: of one value there is nothing to choose."""


def trade(points: Sequence[tuple[str, float, int]], unit: str) -> str:
    """Draw a sweep: for each value how long a reaction takes (to the right) and how many are false (upwards)."""
    if len(points) < POINTS_MIN:
        return ""
    width, height, left, top, bottom = 360, 230, 44, 40, 44
    longest = max(seconds for _, seconds, _ in points) or 1.0
    most = max(false for _, _, false in points) or 1
    places = [
        (left + seconds / longest * (width - left - 40), height - bottom - false / most * (height - bottom - top))
        for _, seconds, false in points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [
        f'<line class="axis" x1="{left}" y1="{height - bottom}" x2="{width - 10}" y2="{height - bottom}"/>',
        f'<line class="axis" x1="{left}" y1="20" x2="{left}" y2="{height - bottom}"/>',
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">0</text>',
        f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{most}</text>',
        f'<text x="{width - 10}" y="{height - bottom + 18}" text-anchor="end">{longest:g} s</text>',
        f'<text x="{left}" y="{height - 8}">median time to react</text>',
        f'<text x="{left - 6}" y="12">false failovers</text>',
        f'<polyline class="trade" points="{path}"/>',
    ]
    for (value, seconds, false), (x, y) in zip(points, places, strict=True):
        title = f"{value} {unit}: {seconds:g} s to react, {false} false"
        parts.append(f'<circle class="trade" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(title)}</title></circle>')
    for (value, _, _), (x, y) in zip(points, _apart(points, places), strict=True):
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(value)}</text>')
    label = escape(f"time to react against false failovers, for each {unit}")
    return f'<svg class="trade" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _apart(points: Sequence[tuple[str, float, int]], places: Sequence[Point]) -> list[Point]:
    """Give where each value is written: beside its point, and further to the right where another value is."""
    taken: list[tuple[float, float, float]] = []
    for (value, _, _), (x, y) in zip(points, places, strict=True):
        begin, line, width = x + 7, y - 6, LETTER * len(value)
        near = sorted((at, end) for at, end, other in taken if abs(other - line) < LINE)
        for at, end in near:
            if at < begin + width and begin < end:
                begin = end + LETTER
        taken.append((begin, begin + width, line))
    return [(begin, line) for begin, _, line in taken]
