"""Judges what a cluster of zones owes: a zone isolated, and open again, in time, and all as it was at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import inf

from reactor.audit.spans import Span
from reactor.audit.verdict import Breach
from tests.judge.object_history import Run, good
from tests.judge.spells import common
from tests.judge.zone_history import EXCLUDED, NONE, RELEASED, Marks, ZoneHistory
from tests.judge.zone_model import FENCES, HOLDS, STEPS_SECONDS, Cluster, any_bad, at_the_time, to_isolate

Must = tuple[Span, float, bool, Marks]
"""A stretch that calls for it, by when, whether the zone has to be isolated then, and as to which marks."""


def musts(zone: ZoneHistory, run: Run) -> Iterator[Must]:
    """Give each stretch that must have led to an isolation, or to its end, before it was over."""
    for spell in reduce(common, [list(spans) for spans in zone.witnesses.values()]):
        for seconds, marks in ((0.0, FENCES), (STEPS_SECONDS, HOLDS)):
            due = _due(zone, run, spell, zone.toleration, seconds)
            if due is not None and not any(one.meets(Span(spell.begin, due)) for one in zone.elsewhere):
                yield spell, due, True, marks
    for spell in good([span for spans in zone.witnesses.values() for span in spans])[1:]:
        due = _due(zone, run, spell, zone.recovery, STEPS_SECONDS)
        if due is not None:
            yield spell, due, False, HOLDS


def _due(zone: ZoneHistory, run: Run, spell: Span, window: float, seconds: float) -> float | None:
    begun = run.due_for(zone, spell, window)
    due = replace(run, grace=seconds).due(begun) if seconds else begun
    if spell.end == inf:
        return min(due, run.end)
    return due if due < spell.end and due <= run.end else None


def lost(zone: ZoneHistory, owed: Sequence[Must]) -> Iterator[Breach]:
    """Give what was not done in time."""
    for spell, due, isolated, marks in owed:
        cluster = Cluster(zone)
        for write in zone.writes:
            if write.at <= due:
                cluster.take(write, founded=True)
        since = f"called for since {spell.begin:.3f}"
        if not isolated:
            if not all(cluster.none_has(mark) for mark in (*HOLDS, RELEASED)):
                yield Breach("lost", zone.name, due, f"it is not open, {since}")
        elif not cluster.all_have(*marks):
            yield Breach("lost", zone.name, due, f"it is not {'isolated' if EXCLUDED in marks else 'fenced'}, {since}")
        elif marks is HOLDS and at_the_time(zone.occupied, due):
            yield Breach("lost", zone.name, due, f"its pods have not left, {since}")


def converged(zone: ZoneHistory, run: Run) -> Iterator[Breach]:
    """Give what is not as a run without faults would have left it."""
    for name in zone.changed:
        yield Breach("converged", zone.name, run.end, f"{name} is not as it was")
    called, bad = to_isolate(zone, 0.0), any_bad(zone)
    isolated = bool(called) and called[-1].end == inf
    if called and not isolated and bad[-1].end == inf:
        return  # it stays as it is, isolated or not
    for node, wanted in zone.nodes.items():
        now = zone.marks.get(node, NONE)
        if isolated:
            now -= {RELEASED}  # of a way back that was called off
        if now != (wanted if isolated else NONE):
            where = "isolated" if isolated else "open"
            yield Breach(
                "converged", zone.name, run.end, f"{where}, and {node} has {', '.join(sorted(now)) or 'nothing'}"
            )
    if isolated and at_the_time(zone.occupied, run.end):
        yield Breach("converged", zone.name, run.end, "isolated, and pods are in it")
