"""What happened to one route: when its primary was bad in truth, and what was written to it. Plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in seconds on one monotonic clock. `end` is infinite where it has not ended."""

    begin: float
    end: float = inf

    def meets(self, other: Span) -> bool:
        """Whether the two have a moment in common."""
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True)
class Write:
    """One effective write to a route, as its API server saw it."""

    at: float
    weights: Mapping[str, int]
    """All weights of the route after it."""
    generation: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RouteHistory:
    """One route over one run."""

    name: str
    primary: str
    toleration: float
    recovery: float
    outages: tuple[Span, ...]
    """When the primary was bad, in order, without overlap."""
    writes: tuple[Write, ...]
    deserted: Span | None = None
    """When no secondary was good either: nothing may then be moved away."""

    def away(self, write: Write) -> bool:
        """Whether this write took the traffic from the primary."""
        return write.weights[self.primary] == 0

    def is_away(self, at: float) -> bool:
        """Whether the traffic was away at this moment; at home before the first write."""
        before = [write for write in self.writes if write.at <= at]
        return bool(before) and self.away(before[-1])

    def recoveries(self) -> tuple[Span, ...]:
        """When the primary was good again, one stretch after each outage that ended."""
        begins = [outage.begin for outage in self.outages[1:]] + [inf]
        pairs = zip(self.outages, begins, strict=False)  # none where there was no outage
        return tuple(Span(outage.end, begin) for outage, begin in pairs if outage.end < inf)


@dataclass(frozen=True, slots=True)
class Run:
    """What all routes of one run share."""

    routes: tuple[RouteHistory, ...]
    end: float
    """When looking ended."""
    troubles: tuple[Span, ...] = ()
    """When the reactors, the bus or the API server could not do their work: actions may then be late, nothing else."""
    wipes: tuple[float, ...] = ()
    """When the bus forgot everything: epochs begin again, generations do not."""
    grace: float = 5.0
    """How long, in seconds, an action may take from the end of its window while all is well."""
    slack: float = 0.05
    """How far, in seconds, two clocks of one machine may lie apart."""

    def due(self, window_over: float) -> float:
        """Give the moment by which something must be done that may be done from `window_over` on.

        Troubled time does not count: grace is the sum of the good time.
        """
        left, at = self.grace, window_over
        for trouble in merged(self.troubles):
            if trouble.end <= at:
                continue
            if trouble.begin - at >= left:
                break
            left -= max(trouble.begin - at, 0.0)
            at = trouble.end
        return at + left

    def troubled(self, span: Span) -> bool:
        """Whether any trouble falls into this stretch."""
        return any(trouble.meets(span) for trouble in self.troubles)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Give the same time as stretches in order that do not overlap."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda one: one.begin):
        if out and span.begin <= out[-1].end:
            out[-1] = Span(out[-1].begin, max(out[-1].end, span.end))
        else:
            out.append(span)
    return out
