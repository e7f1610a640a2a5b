"""Promises that were broken on a route whose rule was edited: by the rule that was in force, edit by edit.

A write has to be right by a version of the files that a process still used: nothing else excuses it. What a rule
calls for has to be done once its window is over by the dates of what was seen, and all processes have taken the edit.

ruleless     a write although no process had a rule for the route any more
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from reactor.audit.spans import Span
from reactor.audit.verdict import Breach
from tests.judge.checker import check
from tests.judge.object_history import RouteHistory, Run, Write
from tests.judge.stretches import SEEN_WITHIN
from tests.simulation.fleet.reload import TAKEN, Version

Judge = Callable[[RouteHistory], Iterable[Breach]]
"""Gives what a route's writes broke, by the toleration that the route has."""
OF_WRITES = ("early", "needless", "blind", "doubled", "last-one")


@dataclass(frozen=True, slots=True)
class _InForce:
    """Content of the files about one route for some time."""

    begin: float
    end: float
    used_until: float
    toleration: float | None


def is_edited(name: str, versions: Sequence[Version]) -> bool:
    """True if the files change for this route."""
    return len({version.tolerations.get(name) for version in versions}) > 1


def judge_edits(route: RouteHistory, run: Run, versions: Sequence[Version], blind: Judge) -> Iterator[Breach]:
    """Give every breach on this route. `blind`: what is judged of writes beside the checker's promises."""
    said = list(_said(route.name, versions))
    for write in route.writes:
        yield from _write(route, run, write, said, blind)
    for life in _lives(route, said):
        found = check(replace(run, routes=(replace(route, writes=life),))).breaches
        yield from (breach for breach in found if breach.promise == "interleaved")
    for one in said:
        yield from _lost(route, run, one)


def _said(name: str, versions: Sequence[Version]) -> Iterator[_InForce]:
    last: _InForce | None = None
    for version in versions:
        now = _InForce(version.begin, version.end, version.used_until, version.tolerations.get(name))
        if last is not None and last.toleration == now.toleration:
            last = replace(last, end=now.end, used_until=now.used_until)
            continue
        if last is not None:
            yield last
        last = now
    if last is not None:
        yield last


def _write(
    route: RouteHistory, run: Run, write: Write, said: Sequence[_InForce], blind: Judge
) -> Iterator[Breach]:  # fmt: skip
    sent = write.at - write.under_way - SEEN_WITHIN
    tolerated = [
        one.toleration
        for one in said
        if one.begin <= write.at and sent <= one.used_until and one.toleration is not None
    ]
    if not tolerated:
        yield Breach("ruleless", route.name, write.at, "no rule was about it any more")
        return
    by_rule = replace(route, toleration=min(tolerated))
    found = [*check(replace(run, routes=(by_rule,))).breaches, *blind(by_rule)]
    yield from (one for one in found if one.at == write.at and one.promise in OF_WRITES)


def _lives(route: RouteHistory, said: Sequence[_InForce]) -> Iterator[tuple[Write, ...]]:
    """Give the writes of each time that the rule was there: one that is put back counts from one again."""
    begins = [one.begin for one, before in zip(said[1:], said, strict=False) if before.toleration is None]
    edges = [-inf, *begins, inf]
    for begin, end in pairwise(edges):
        yield tuple(write for write in route.writes if begin <= write.at < end)


def _lost(route: RouteHistory, run: Run, one: _InForce) -> Iterator[Breach]:
    """Give what was not done while the files said this."""
    if one.toleration is None:
        return
    musts = [(spell, one.toleration, frozenset((route.primary,))) for spell in route.outages]
    musts += [(spell, route.recovery, frozenset(route.others)) for spell in route.recoveries()]
    taken = run.due(one.begin + TAKEN)
    for spell, window, empty in musts:
        due = max(run.due_for(route, spell, window), taken)
        stands = Span(max(spell.begin, one.begin), min(spell.end, one.end))
        if spell.end == inf and one.end == inf:
            due = min(due, run.end)
        if not stands.begin <= due < min(stands.end, run.end + 1e-9):
            continue
        weights = route.weights_at(due)
        if any(weights[name] for name in empty):
            what = f"{', '.join(sorted(empty))} still has traffic, called for since {spell.begin:.3f}"
            yield Breach("lost", route.name, due, what)
