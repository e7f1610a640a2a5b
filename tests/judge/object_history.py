"""History of one object: the times at which each of its backends was bad in truth, and the writes to it. Plain values.

A route has backends, a zone has itself and the rest. Each is one `RouteHistory`. A workload is a `WorkloadHistory`; in
simulated fleets, where only its first move is judged, it is a `RouteHistory` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from reactor.audit.spans import Span, merged
from tests.judge.workload_history import WorkloadHistory
from tests.judge.zone_history import ZoneHistory


@dataclass(frozen=True, slots=True)
class Write:
    """One effective write to an object, as its API server saw it."""

    at: float
    weights: Mapping[str, int]
    """Weights of the whole object after it."""
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
    """Spans in which the primary was bad, in order, without overlap."""
    writes: tuple[Write, ...]
    others: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    """Spans in which each of the other backends was bad."""
    period: float = 0.0
    """Seconds between two looks of the source: it cannot see what is shorter, and sees an end so much later."""
    valid: float = 0.0
    """Seconds for which each word of its source holds, where the source cannot be asked."""
    cut_off: tuple[Span, ...] = ()
    """Spans in which such a source had said something that the bus did not take yet."""
    lag: float = 0.0
    """Seconds by which what the source reads may itself be behind: an outage may look longer by this."""
    blind: tuple[Span, ...] = ()
    """Spans in which nothing looked at it: the source was away, or no reactor ran."""
    unheard: tuple[Span, ...] = ()
    """Spans in which its source could tell no reactor what begins, as the bus was away: what is first reported at the
    end begins there, what was told before goes on."""
    dark: bool = True
    """True if in these spans nothing could look either, if it was asked to."""
    blind_grace: float = 10.0
    """Seconds, beside a whole window, from the end of such a stretch to the action that is then due."""
    returns: bool = True
    """True if it moves back by itself; a zone whose rule asks a person does not."""
    stamped: bool = True
    """True if it says which decision it follows: its decisions count on after the store was wiped. Those about zones
    begin again, and count on as long as there is no other wipe."""

    def outages_of(self, backend: str) -> tuple[Span, ...]:
        """Give when this backend was bad."""
        return self.outages if backend == self.primary else self.others.get(backend, ())

    def away(self, write: Write) -> bool:
        """True if this write took everything from the primary."""
        return write.weights[self.primary] == 0

    def at_first(self) -> Mapping[str, int]:
        """Give the weights before the first write: everything is with the primary."""
        return {self.primary: 1, **dict.fromkeys(self.others, 0)}

    def weights_at(self, at: float) -> Mapping[str, int]:
        """Give the weights at this moment."""
        before = [write for write in self.writes if write.at <= at]
        return before[-1].weights if before else self.at_first()

    def is_away(self, at: float) -> bool:
        """True if the primary had nothing at this moment."""
        return self.weights_at(at)[self.primary] == 0

    def outages_seen(self) -> tuple[Span, ...]:
        """Give the primary's outages, two of them as one where nothing could look at it between them."""
        seen: list[Span] = []
        for outage in self.outages:
            unseen = seen and any(
                gap.begin <= seen[-1].end and outage.begin <= gap.end for gap in merged(self.blind)
            )  # fmt: skip
            seen = [*seen[:-1], Span(seen[-1].begin, outage.end)] if unseen else [*seen, outage]
        return tuple(seen)

    def recoveries(self) -> tuple[Span, ...]:
        """Spans in which the primary was good again, one after each outage that ended."""
        return good(self.outages)[1:] if self.returns else ()


def good(outages: Iterable[Span]) -> tuple[Span, ...]:
    """Give the stretches between outages, from the beginning of time to its end."""
    bad = merged(outages)
    begins, ends = [-inf, *(one.end for one in bad)], [*(one.begin for one in bad), inf]
    return tuple(Span(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end)


class Watched(Protocol):
    """An object, by when anything looked at it."""

    @property
    def lag(self) -> float: ...
    @property
    def blind(self) -> tuple[Span, ...]: ...
    @property
    def unheard(self) -> tuple[Span, ...]: ...
    @property
    def blind_grace(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Run:
    """Conditions that all objects of one run share. Times in seconds."""

    routes: tuple[RouteHistory, ...]
    end: float
    """Time at which looking ended."""
    troubles: tuple[Span, ...] = ()
    """Spans in which the reactors, the bus or the API server could not do their work: actions may then be late, nothing
    else."""
    wipes: tuple[float, ...] = ()
    """Times at which the bus forgot everything: epochs begin again, generations do not."""
    grace: float = 5.0
    """Most seconds for an action from the end of its window, or of a trouble, while all is well."""
    slack: float = 0.05
    """Most seconds by which two clocks of one machine differ."""
    workloads: tuple[WorkloadHistory, ...] = ()
    zones: tuple[ZoneHistory, ...] = ()

    @property
    def writes(self) -> int:
        """Number of writes to all objects."""
        objects: Iterable[RouteHistory | WorkloadHistory | ZoneHistory] = (*self.routes, *self.workloads, *self.zones)
        return sum(len(one.writes) for one in objects)

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

    def due_for(self, route: Watched, spell: Span, window: float) -> float:
        """Give the moment by which a stretch has to have led to its action: where nothing looked, time begins again."""
        begin, extra = spell.begin, 0.0
        for gap in merged(route.blind):
            if begin < gap.end and gap.begin < begin + window + self.grace:
                begin, extra = gap.end, max(route.blind_grace - self.grace, 0.0)
        for gap in merged(route.unheard):
            if gap.begin - route.lag <= spell.begin < gap.end:
                begin, extra = gap.end, route.lag
        return max(self.due(begin + window) + extra, self.due(spell.begin + window))
