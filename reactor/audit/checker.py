"""Judges each promise over one run, from the script of outages and the writes.

lost        a window was over, everything worked for `grace`, and the traffic did not stand where it belongs
doubled     two writes for one outage or one recovery, or a write that changed no weight
early       a write before its window was over, counted from the moment at which the outage truly began
needless    a write for an outage or a recovery that was shorter than its window, with nothing in the way of seeing so
interleaved a write with an older generation or epoch than the one that stood on the object
last-one    a write that left no weight at all, or moved traffic to secondaries that were all gone
converged   at the end the traffic does not stand where a run without faults would have left it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from reactor.audit.history import RouteHistory, Run, Span, Write

PROMISES = ("lost", "doubled", "early", "needless", "interleaved", "last-one", "converged")
SEEN_WITHIN = 1.0
"""Seconds within which a recovery is seen and counted everywhere: one that comes later than that may come too late."""
IN_HANDS = 5.0
"""Seconds that an action may be in an executor's hands: its own limit is a little less in a chaos run."""
LOOKED_AT_ONCE = 1.0
"""Seconds after the last good secondary fell in which a decision may still rest on it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One promise that was not kept."""

    promise: str
    route: str
    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.route} at {self.at:.3f}: {self.what}"


@dataclass(slots=True)
class Verdict:
    """How often each promise was put to the test, and each time that it was not kept."""

    tested: Counter[str] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)

    def broken(self, promise: str) -> int:
        """How often this promise was not kept."""
        return sum(breach.promise == promise for breach in self.breaches)

    def add(self, promise: str, breaches: Sequence[Breach], *, tested: int) -> None:
        """Count what one look at a promise gave."""
        self.tested[promise] += tested
        self.breaches += breaches


def check(run: Run) -> Verdict:
    """Judge all promises over all routes."""
    verdict = Verdict()
    for route in run.routes:
        musts = list(_musts(route, run))
        verdict.add("lost", list(_lost(route, musts)), tested=len(musts))
        order = list(_interleaved(route, run))
        verdict.add("interleaved", order, tested=max(len(route.writes) - 1, 0))
        verdict.add("last-one", list(_last_one(route)), tested=len(route.writes))
        verdict.add("converged", list(_converged(route, run)), tested=1)
        unasked = list(_unasked(route, run))
        for promise in ("early", "doubled", "needless"):
            verdict.add(promise, [one for one in unasked if one.promise == promise], tested=len(route.writes))
    return verdict


def _spells(route: RouteHistory, *, away: bool) -> tuple[tuple[Span, ...], float]:
    """Give the stretches that call for a move in this direction, and how long each has to last."""
    return (route.outages, route.toleration) if away else (route.recoveries(), route.recovery)


def _musts(route: RouteHistory, run: Run) -> Iterator[tuple[bool, Span, float]]:
    """Give each stretch that must have led to its move, and by when."""
    for away in (True, False):
        spells, window = _spells(route, away=away)
        for spell in spells:
            # What still calls for its move when looking ends was waited for, whatever the trouble was.
            due = run.end if spell.end == inf else run.due(spell.begin + window)
            if due < spell.end and due <= run.end and not _is_deserted(route, Span(spell.begin, due)):
                yield away, spell, due


def _is_deserted(route: RouteHistory, span: Span) -> bool:
    return route.deserted is not None and route.deserted.meets(span)


def _lost(route: RouteHistory, musts: Sequence[tuple[bool, Span, float]]) -> Iterator[Breach]:
    for away, spell, due in musts:
        if route.is_away(due) is not away:
            where = "away" if away else "home"
            yield Breach("lost", route.name, due, f"traffic is not {where}, called for since {spell.begin:.3f}")


def _unasked(route: RouteHistory, run: Run) -> Iterator[Breach]:
    """Give the writes that nothing called for: too early, once more, or for what was over before its window."""
    answered = {True: -inf, False: -inf}  # per direction, the begin of the newest stretch that has its write
    stood: Mapping[str, int] | None = None
    for write in route.writes:
        if write.weights == stood:
            yield Breach("doubled", route.name, write.at, f"weights {dict(write.weights)} were written again")
            continue
        stood = write.weights
        away = route.away(write)
        spells, window = _spells(route, away=away)
        begun = [spell for spell in spells if spell.begin <= write.at]
        over = [spell for spell in begun if spell.begin + window - run.slack <= write.at]
        fresh = [spell for spell in over if spell.begin > answered[away]]
        if not fresh:
            yield _too_much(route, write, begun, over, window)
            continue
        spell = next((one for one in fresh if _explains(one, write, run, window)), fresh[-1])
        answered[away] = spell.begin
        yield from _needless(route, run, write, spell, window)


def _explains(spell: Span, write: Write, run: Run, window: float) -> bool:
    """Whether the write may be for this stretch: it goes on; or it is over, and trouble has kept the write waiting."""
    if spell.end >= write.at - SEEN_WITHIN:
        return True
    return spell.end >= spell.begin + window - SEEN_WITHIN and run.troubled(Span(spell.begin, write.at))


def _too_much(route: RouteHistory, write: Write, begun: Sequence[Span], over: Sequence[Span], window: float) -> Breach:
    where = "away" if route.away(write) else "home"
    if over and begun[-1] is over[-1]:
        return Breach("doubled", route.name, write.at, f"{where} once more, for {over[-1]}")
    since = f"{write.at - begun[-1].begin:.3f} s of {window:g} s" if begun else "nothing had happened"
    return Breach("early", route.name, write.at, f"{where}, {since}")


def _needless(route: RouteHistory, run: Run, write: Write, spell: Span, window: float) -> Iterator[Breach]:
    short = spell.end < spell.begin + window - SEEN_WITHIN
    if short and not run.troubled(Span(spell.begin, write.at)):
        lasted = spell.end - spell.begin
        yield Breach("needless", route.name, write.at, f"for {lasted:.3f} s where {window:g} s are tolerated")


def _interleaved(route: RouteHistory, run: Run) -> Iterator[Breach]:
    last: Write | None = None
    for write in route.writes:
        if last is not None:
            # What was in somebody's hands when the store was wiped may still be written with the old epoch.
            wiped = any(last.at - IN_HANDS <= wipe <= write.at for wipe in run.wipes)
            if write.generation <= last.generation:
                what = f"generation {write.generation} after {last.generation}"
                yield Breach("interleaved", route.name, write.at, what)
            elif write.epoch < last.epoch and not wiped:
                yield Breach("interleaved", route.name, write.at, f"epoch {write.epoch} after {last.epoch}")
        last = write


def _last_one(route: RouteHistory) -> Iterator[Breach]:
    for write in route.writes:
        if not any(write.weights.values()):
            yield Breach("last-one", route.name, write.at, "all weights are zero")
        elif route.away(write) and _is_deserted(route, Span(write.at - LOOKED_AT_ONCE, write.at - LOOKED_AT_ONCE)):
            yield Breach("last-one", route.name, write.at, "moved to secondaries that were gone")


def _converged(route: RouteHistory, run: Run) -> Iterator[Breach]:
    if _is_deserted(route, Span(run.end, inf)):
        return  # it stays where it stood, wherever that was
    bad = bool(route.outages) and route.outages[-1].end == inf
    if route.is_away(run.end) is not bad:
        where = "away" if bad else "home"
        yield Breach("converged", route.name, run.end, f"the traffic ended elsewhere than {where}")
