"""Judges each write to a cluster of zones against what a perfect reactor might have written.

A zone is isolated while both witnesses have seen it bad for the toleration and no other zone is bad: all nodes are
fenced, then all are out of the load balancers, then its pods leave. It is opened when no witness has seen it bad for
the recovery: first the load balancers, then the fences, batch by batch. What has begun goes on only as the product says
it: once the first step is done, the isolation is finished, also if the zone is well again meanwhile.

lost        it was not isolated, or not open again, in time
doubled     a write that changed nothing
early       the zone was bad, or well, for less than its window; or a batch of nodes came before the last was watched
needless    the zone was not bad; or something was written that no isolation writes
blind       one witness alone saw it bad, or other zones were bad, too; it was opened while bad; or nothing had looked
interleaved a step before the one that comes first
last-one    a node or a pod of another zone
converged   at the end not everything is as a run without faults would have left it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

from reactor.audit.spans import Span, merged
from reactor.audit.verdict import AuditVerdict, Breach
from tests.judge.object_history import Run, good
from tests.judge.stretches import SEEN_WITHIN, common, over
from tests.judge.zone_history import CORDONED, EXCLUDED, FENCED, NONE, RELEASED, Marks, ZoneHistory, ZoneWrite

PROMISES = ("last-one", "early", "doubled", "needless", "blind", "interleaved")
"""Those that a single write can break."""
STEPS_SECONDS = 20.0
"""Seconds of good time from the first step of an isolation, or of its way back, to the last."""
HOLDS: Marks = frozenset((FENCED, CORDONED, EXCLUDED))
FENCES: Marks = frozenset((FENCED, CORDONED))


def judge(zone: ZoneHistory, run: Run, verdict: AuditVerdict) -> None:
    """Add the breaches of one zone."""
    musts = list(_musts(zone, run))
    verdict.add("lost", list(_lost(zone, musts)), tested=len(musts))
    verdict.add("converged", list(_converged(zone, run)), tested=1)
    wrong = list(_wrong(zone, run))
    for promise in PROMISES:
        verdict.add(promise, [one for one in wrong if one.promise == promise], tested=len(zone.writes))


def finished(zone: ZoneHistory, run: Run) -> int:
    """Give how many writes isolated a zone that was well by then, to finish what was begun."""
    cluster, count = _Cluster(zone), 0
    for write in zone.writes:
        isolates = write.marks is None or (write.marks - cluster.of(write.node)) & HOLDS
        if isolates and not common([_recent(zone, run, write.at)], _to_isolate(zone, run.slack)):
            count += 1
        cluster.take(write, founded=True)
    return count


@dataclass
class _Cluster:
    """The zone's nodes as they are after some writes."""

    zone: ZoneHistory
    marks: dict[str, Marks] = field(default_factory=dict)
    begun: bool = False
    """The first step was done while it was right, and nothing was opened since."""
    released: list[float] = field(default_factory=list)
    """Times at which nodes were let go, since the last one was fenced."""

    def of(self, node: str) -> Marks:
        """Give the marks on this node."""
        return self.marks.get(node, NONE)

    def all_have(self, *some: str) -> bool:
        """True if every node has those of these marks that it has to have."""
        return all(wanted & set(some) <= self.of(node) for node, wanted in self.zone.nodes.items())

    def none_has(self, mark: str) -> bool:
        """True if no node has it."""
        return not any(mark in self.of(node) for node in self.zone.nodes)

    def take(self, write: ZoneWrite, *, founded: bool) -> None:
        """Let a write happen."""
        if write.marks is None:
            return
        gained, lost = write.marks - self.of(write.node), self.of(write.node) - write.marks
        self.marks[write.node] = write.marks
        if lost & HOLDS:
            self.begun = False
        if lost & FENCES:
            self.released.append(write.at)
        if gained & FENCES:
            self.released.clear()
            self.begun = founded and self.all_have(FENCED, CORDONED)


def _wrong(zone: ZoneHistory, run: Run) -> Iterator[Breach]:
    cluster = _Cluster(zone)
    for write in zone.writes:
        founded = False
        if write.node and write.node not in zone.nodes:
            yield Breach("last-one", zone.name, write.at, f"{write.pod or write.node} is in another zone")
        elif write.foreign:
            yield Breach("needless", zone.name, write.at, f"{write.foreign} was written")
        elif write.marks is None:
            yield from _evicted(zone, run, cluster, write)
        elif write.marks == cluster.of(write.node):
            yield Breach("doubled", zone.name, write.at, f"node {write.node} was written again")
        else:
            found = list(_marked(zone, run, cluster, write))
            founded = not found
            yield from found
        cluster.take(write, founded=founded)


def _marked(zone: ZoneHistory, run: Run, cluster: _Cluster, write: ZoneWrite) -> Iterator[Breach]:
    assert write.marks is not None
    gained, lost = write.marks - cluster.of(write.node), cluster.of(write.node) - write.marks
    if gained & HOLDS:
        if EXCLUDED in gained and not cluster.all_have(FENCED, CORDONED):
            yield _before(zone, write, "taken out of the load balancers", "all nodes are fenced")
        yield from _isolating(zone, run, cluster, write, f"node {write.node} got {', '.join(sorted(gained & HOLDS))}")
    if lost & HOLDS:
        if lost & FENCES and not cluster.none_has(EXCLUDED):
            yield _before(zone, write, "let go", "all are back in the load balancers")
        yield from _opening(zone, run, write, f"node {write.node} lost {', '.join(sorted(lost & HOLDS))}")
    if lost & FENCES:
        yield from _batched(zone, run, cluster, write)
    if RELEASED in lost and not (gained & HOLDS or cluster.none_has(FENCED)):
        yield _before(zone, write, "said to be back", "all are")


def _evicted(zone: ZoneHistory, run: Run, cluster: _Cluster, write: ZoneWrite) -> Iterator[Breach]:
    if not cluster.all_have(FENCED, CORDONED, EXCLUDED):
        yield _before(zone, write, "evicted", "the zone is fenced and out of the load balancers")
    yield from _isolating(zone, run, cluster, write, f"{write.pod} was evicted")


def _before(zone: ZoneHistory, write: ZoneWrite, what: str, step: str) -> Breach:
    return Breach("interleaved", zone.name, write.at, f"{write.pod or write.node} is {what} before {step}")


def _isolating(zone: ZoneHistory, run: Run, cluster: _Cluster, write: ZoneWrite, what: str) -> Iterator[Breach]:
    recent = [_recent(zone, run, write.at)]
    if common(recent, _to_isolate(zone, run.slack)):
        if not cluster.begun:
            yield from _unseen(zone, run, write, what)
        return
    well = _now(good(_any_bad(zone)), write.at)
    if cluster.begun and FENCES.isdisjoint((write.marks or NONE) - cluster.of(write.node)):
        limit = replace(run, grace=STEPS_SECONDS).due(well.begin) if well else inf
        if write.at <= limit:
            return  # what was begun is finished
        yield Breach(
            "needless", zone.name, write.at, f"{what}, well for {write.at - limit:.3f} s longer than that takes"
        )
        return
    yield _unfounded(zone, run, write, what)


def _unfounded(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Breach:
    recent = [_recent(zone, run, write.at)]
    if not common(recent, _any_bad(zone)):
        return Breach("needless", zone.name, write.at, f"{what}, and the zone was well")
    bad = common(recent, _both_bad(zone))
    if not bad:
        return Breach("blind", zone.name, write.at, f"{what}, and one witness alone saw it bad")
    if not common(bad, good(zone.elsewhere)):
        return Breach("blind", zone.name, write.at, f"{what}, and other zones were bad, too")
    spell = next(one for one in _both_bad(zone) if one.meets(bad[-1]))
    seconds = min(write.at, spell.end) - spell.begin
    return Breach("early", zone.name, write.at, f"{what} after {seconds:.3f} s of {zone.toleration:g} s")


def _unseen(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Iterator[Breach]:
    """Give the breach, if nothing looked from the end of the window to the write."""
    for spell in [one for one in _to_isolate(zone, run.slack) if one.begin <= write.at][-1:] if zone.dark else ():
        end = write.at + run.slack
        if any(gap.begin <= spell.begin and end <= gap.end for gap in merged(zone.blind)):
            yield Breach("blind", zone.name, write.at, f"{what}, and nothing had looked since the window")


def _opening(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Iterator[Breach]:
    recent = [_recent(zone, run, write.at)]
    if common(recent, over(good(_any_bad(zone)), zone.recovery - run.slack)):
        return
    if not common(recent, good(_any_bad(zone))):
        yield Breach("blind", zone.name, write.at, f"{what}, and the zone was bad")
        return
    since = max(one.end for one in _any_bad(zone) if one.end <= write.at + run.slack)
    seconds = write.at - since
    yield Breach("early", zone.name, write.at, f"{what} after {seconds:.3f} s of {zone.recovery:g} s")


def _batched(zone: ZoneHistory, run: Run, cluster: _Cluster, write: ZoneWrite) -> Iterator[Breach]:
    free = sum(FENCED not in cluster.of(node) for node in zone.nodes)
    since = write.at - max(cluster.released, default=-inf)
    if free in zone.batches and since < zone.bake - SEEN_WITHIN - run.slack:
        what = f"{write.node} is back {since:.3f} s after {free} others, which are watched for {zone.bake:g} s"
        yield Breach("early", zone.name, write.at, what)


def _recent(zone: ZoneHistory, run: Run, at: float) -> Span:
    """Give the time of which a write may still not know the end."""
    return Span(at - SEEN_WITHIN - zone.period, at + run.slack)


def _witnessed(zone: ZoneHistory) -> list[list[Span]]:
    """Give when each witness saw it bad: breaks shorter than its period it does not see."""
    return [merged(spans, gap=zone.period) for spans in zone.witnesses.values()]


def _both_bad(zone: ZoneHistory) -> list[Span]:
    return reduce(common, _witnessed(zone))


def _any_bad(zone: ZoneHistory) -> list[Span]:
    return merged([span for spans in _witnessed(zone) for span in spans])


def _to_isolate(zone: ZoneHistory, slack: float) -> list[Span]:
    """Give when the zone has to be isolated: both have seen it bad for the toleration, and the others are well."""
    return common(over(_both_bad(zone), zone.toleration - slack), good(zone.elsewhere))


def _now(spells: list[Span] | tuple[Span, ...], at: float) -> Span | None:
    return next((one for one in spells if one.begin <= at < one.end), None)


Must = tuple[Span, float, bool, Marks]
"""A stretch that calls for it, by when, whether the zone has to be isolated then, and as to which marks."""


def _musts(zone: ZoneHistory, run: Run) -> Iterator[Must]:
    for spell in reduce(common, [list(spans) for spans in zone.witnesses.values()]):
        for seconds, marks in ((0.0, FENCES), (STEPS_SECONDS, HOLDS)):
            due = _due(zone, run, spell, zone.toleration, seconds)
            if due is not None and not any(one.meets(Span(spell.begin, due)) for one in zone.elsewhere):
                yield spell, due, True, marks
    for spell in good([span for spans in zone.witnesses.values() for span in spans])[1:]:
        # What was begun before is finished first.
        due = _due(zone, run, spell, zone.recovery, 2 * STEPS_SECONDS)
        if due is not None:
            yield spell, due, False, HOLDS


def _due(zone: ZoneHistory, run: Run, spell: Span, window: float, seconds: float) -> float | None:
    begun = run.due_for(zone, spell, window)
    due = replace(run, grace=seconds).due(begun) if seconds else begun
    if spell.end == inf:
        return min(due, run.end)
    return due if due < spell.end and due <= run.end else None


def _lost(zone: ZoneHistory, musts: list[Must]) -> Iterator[Breach]:
    for spell, due, isolated, marks in musts:
        cluster = _Cluster(zone)
        for write in zone.writes:
            if write.at <= due:
                cluster.take(write, founded=True)
        since = f"called for since {spell.begin:.3f}"
        if not isolated:
            if not all(cluster.none_has(mark) for mark in (*HOLDS, RELEASED)):
                yield Breach("lost", zone.name, due, f"it is not open, {since}")
        elif not cluster.all_have(*marks):
            yield Breach("lost", zone.name, due, f"it is not {'isolated' if EXCLUDED in marks else 'fenced'}, {since}")
        elif marks is HOLDS and _now(zone.occupied, due):
            yield Breach("lost", zone.name, due, f"its pods have not left, {since}")


def _converged(zone: ZoneHistory, run: Run) -> Iterator[Breach]:
    for name in zone.changed:
        yield Breach("converged", zone.name, run.end, f"{name} is not as it was")
    called, bad = _to_isolate(zone, 0.0), _any_bad(zone)
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
    if isolated and _now(zone.occupied, run.end):
        yield Breach("converged", zone.name, run.end, "isolated, and pods are in it")
