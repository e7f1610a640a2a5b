"""What happened to one object: when each of its backends was bad in truth, and what was written to it. Plain values.

A route has backends; a workload has clusters, a zone has itself and the rest. Each is one `RouteHistory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in seconds on one monotonic clock. `end` is infinite where it has not ended."""

    begin: float
    end: float = inf

    def meets(self, other: Span) -> bool:
        """Whether the two have a moment in common."""
        return self.begin < other.end and other.begin < self.end

    def within(self, other: Span) -> Span | None:
        """Give what the two have in common, if that is more than a moment."""
        return Span(max(self.begin, other.begin), min(self.end, other.end)) if self.meets(other) else None


@dataclass(frozen=True, slots=True)
class Write:
    """One effective write to an object, as its API server saw it."""

    at: float
    weights: Mapping[str, int]
    """All weights of the object after it."""
    generation: int
    epoch: int
    under_way: float = 0.0
    """Seconds from when it was sent until it took effect, where that is known: what came meanwhile stops no write."""


@dataclass(frozen=True, slots=True)
class RouteHistory:
    """One object over one run."""

    name: str
    primary: str
    toleration: float
    recovery: float
    outages: tuple[Span, ...]
    """When the primary was bad, in order, without overlap."""
    writes: tuple[Write, ...]
    others: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    """When each of the other backends was bad."""
    period: float = 0.0
    """Seconds between two looks of the source: it cannot see what is shorter, and sees an end so much later."""
    valid: float = 0.0
    """Seconds for which each word of its source holds, where the source cannot be asked."""
    cut_off: tuple[Span, ...] = ()
    """When such a source had said something that the bus did not take yet."""
    lag: float = 0.0
    """Seconds by which what the source reads may itself be behind: an outage may look longer by this."""
    blind: tuple[Span, ...] = ()
    """When nothing looked at it: the source was away, or no reactor ran."""
    unheard: tuple[Span, ...] = ()
    """When its source could tell no reactor what begins, as the bus was away: what is first heard at the end begins
    there, what was told before goes on."""
    dark: bool = True
    """Whether then nothing could look either, if it was asked to."""
    blind_grace: float = 10.0
    """Seconds, beside a whole window, from the end of such a stretch to the action that is then due."""
    returns: bool = True
    """Whether it moves back by itself."""

    def outages_of(self, backend: str) -> tuple[Span, ...]:
        """Give when this backend was bad."""
        return self.outages if backend == self.primary else self.others.get(backend, ())

    def away(self, write: Write) -> bool:
        """Whether this write took everything from the primary."""
        return write.weights[self.primary] == 0

    def at_first(self) -> Mapping[str, int]:
        """Give the weights before the first write: everything is with the primary."""
        return {self.primary: 1, **dict.fromkeys(self.others, 0)}

    def weights_at(self, at: float) -> Mapping[str, int]:
        """Give the weights at this moment."""
        before = [write for write in self.writes if write.at <= at]
        return before[-1].weights if before else self.at_first()

    def is_away(self, at: float) -> bool:
        """Whether the primary had nothing at this moment."""
        return self.weights_at(at)[self.primary] == 0

    def recoveries(self) -> tuple[Span, ...]:
        """When the primary was good again, one stretch after each outage that ended."""
        return good(self.outages)[1:] if self.returns else ()


def good(outages: Iterable[Span]) -> tuple[Span, ...]:
    """Give the stretches between outages, from the beginning of time to its end."""
    bad = merged(outages)
    begins, ends = [-inf, *(one.end for one in bad)], [*(one.begin for one in bad), inf]
    return tuple(Span(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end)


@dataclass(frozen=True, slots=True)
class Run:
    """What all objects of one run share."""

    routes: tuple[RouteHistory, ...]
    end: float
    """When looking ended."""
    troubles: tuple[Span, ...] = ()
    """When the reactors, the bus or the API server could not do their work: actions may then be late, nothing else."""
    wipes: tuple[float, ...] = ()
    """When the bus forgot everything: epochs begin again, generations do not."""
    grace: float = 5.0
    """How long, in seconds, an action may take from the end of its window, or of a trouble, while all is well."""
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

    def due_for(self, route: RouteHistory, spell: Span, window: float) -> float:
        """Give the moment by which a stretch has to have led to its action: where nothing looked, time begins again."""
        begin, extra = spell.begin, 0.0
        for gap in merged(route.blind):
            if begin < gap.end and gap.begin < begin + window + self.grace:
                begin, extra = gap.end, max(route.blind_grace - self.grace, 0.0)
        for gap in merged(route.unheard):
            if gap.begin - route.lag <= spell.begin < gap.end:
                begin, extra = gap.end, route.lag
        return max(self.due(begin + window) + extra, self.due(spell.begin + window))


def merged(spans: Iterable[Span], *, gap: float = 0.0) -> list[Span]:
    """Give the same time as stretches in order that do not overlap; those less than `gap` apart are one."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda one: one.begin):
        if out and span.begin <= out[-1].end + gap:
            out[-1] = Span(out[-1].begin, max(out[-1].end, span.end))
        else:
            out.append(span)
    return out
