"""Stretches of time, in seconds, such as those in which a target was bad."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in seconds on one monotonic clock. `end` is infinite where it has not ended."""

    begin: float
    end: float = inf

    def meets(self, other: Span) -> bool:
        """True if the two have a moment in common."""
        return self.begin < other.end and other.begin < self.end

    def within(self, other: Span) -> Span | None:
        """Give what the two have in common, if that is more than a moment."""
        return Span(max(self.begin, other.begin), min(self.end, other.end)) if self.meets(other) else None


def merged(spans: Iterable[Span], *, gap: float = 0.0) -> list[Span]:
    """Give the same time as stretches in order that do not overlap; those less than `gap` apart are one."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda one: one.begin):
        if out and span.begin <= out[-1].end + gap:
            out[-1] = Span(out[-1].begin, max(out[-1].end, span.end))
        else:
            out.append(span)
    return out
