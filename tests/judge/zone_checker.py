"""Judges each write to a cluster of zones against what a perfect reactor might have written.

A zone is isolated while both witnesses have seen it bad for the toleration and no other zone is bad: all nodes are
fenced, then all are out of the load balancers, then its pods leave. It is opened when no witness has seen it bad for
the recovery: first the load balancers, then the fences, batch by batch. What has begun goes on while one witness sees
the zone bad. Once none has, it has to be bad for the toleration again.

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
from math import inf

from reactor.audit.spans import merged
from reactor.audit.verdict import AuditVerdict, Breach
from tests.judge.object_history import Run, good
from tests.judge.spells import SEEN_WITHIN, common, over
from tests.judge.zone_history import CORDONED, EXCLUDED, FENCED, NONE, RELEASED, ZoneHistory, ZoneWrite
from tests.judge.zone_model import (
    FENCES,
    HOLDS,
    Cluster,
    any_bad,
    both_bad,
    recent,
    to_isolate,
)
from tests.judge.zone_musts import converged, lost, musts

PROMISES = ("last-one", "early", "doubled", "needless", "blind", "interleaved")
"""Those that a single write can break."""


def judge(zone: ZoneHistory, run: Run, verdict: AuditVerdict) -> None:
    """Add the breaches of one zone."""
    owed = list(musts(zone, run))
    verdict.add("lost", list(lost(zone, owed)), tested=len(owed))
    verdict.add("converged", list(converged(zone, run)), tested=1)
    wrong = list(_wrong(zone, run))
    for promise in PROMISES:
        verdict.add(promise, [one for one in wrong if one.promise == promise], tested=len(zone.writes))


def _wrong(zone: ZoneHistory, run: Run) -> Iterator[Breach]:
    cluster = Cluster(zone)
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


def _marked(zone: ZoneHistory, run: Run, cluster: Cluster, write: ZoneWrite) -> Iterator[Breach]:
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


def _evicted(zone: ZoneHistory, run: Run, cluster: Cluster, write: ZoneWrite) -> Iterator[Breach]:
    if not cluster.all_have(FENCED, CORDONED, EXCLUDED):
        yield _before(zone, write, "evicted", "the zone is fenced and out of the load balancers")
    yield from _isolating(zone, run, cluster, write, f"{write.pod} was evicted")


def _before(zone: ZoneHistory, write: ZoneWrite, what: str, step: str) -> Breach:
    return Breach("interleaved", zone.name, write.at, f"{write.pod or write.node} is {what} before {step}")


def _isolating(zone: ZoneHistory, run: Run, cluster: Cluster, write: ZoneWrite, what: str) -> Iterator[Breach]:
    moments = [recent(zone, run, write.at)]
    if common(moments, to_isolate(zone, run.slack)):
        if not cluster.goes_on(write.at):
            yield from _unseen(zone, run, write, what)
        return
    fences = not FENCES.isdisjoint((write.marks or NONE) - cluster.of(write.node))
    if not fences and cluster.goes_on(write.at) and common(common(moments, any_bad(zone)), good(zone.elsewhere)):
        return  # what was begun is finished
    yield _unfounded(zone, run, write, what)


def _unfounded(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Breach:
    moments = [recent(zone, run, write.at)]
    if not common(moments, any_bad(zone)):
        return Breach("needless", zone.name, write.at, f"{what}, and the zone was well")
    bad = common(moments, both_bad(zone))
    if not bad:
        return Breach("blind", zone.name, write.at, f"{what}, and one witness alone saw it bad")
    if not common(bad, good(zone.elsewhere)):
        return Breach("blind", zone.name, write.at, f"{what}, and other zones were bad, too")
    spell = next(one for one in both_bad(zone) if one.meets(bad[-1]))
    seconds = min(write.at, spell.end) - spell.begin
    return Breach("early", zone.name, write.at, f"{what} after {seconds:.3f} s of {zone.toleration:g} s")


def _unseen(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Iterator[Breach]:
    """Give the breach, if nothing looked from the end of the window to the write."""
    for spell in [one for one in to_isolate(zone, run.slack) if one.begin <= write.at][-1:] if zone.dark else ():
        end = write.at + run.slack
        if any(gap.begin <= spell.begin and end <= gap.end for gap in merged(zone.blind)):
            yield Breach("blind", zone.name, write.at, f"{what}, and nothing had looked since the window")


def _opening(zone: ZoneHistory, run: Run, write: ZoneWrite, what: str) -> Iterator[Breach]:
    moments = [recent(zone, run, write.at)]
    if common(moments, over(good(any_bad(zone)), zone.recovery - run.slack)):
        return
    if not common(moments, good(any_bad(zone))):
        yield Breach("blind", zone.name, write.at, f"{what}, and the zone was bad")
        return
    since = max(one.end for one in any_bad(zone) if one.end <= write.at + run.slack)
    seconds = write.at - since
    yield Breach("early", zone.name, write.at, f"{what} after {seconds:.3f} s of {zone.recovery:g} s")


def _batched(zone: ZoneHistory, run: Run, cluster: Cluster, write: ZoneWrite) -> Iterator[Breach]:
    free = sum(FENCED not in cluster.of(node) for node in zone.nodes)
    since = write.at - max(cluster.released, default=-inf)
    if free in zone.batches and since < zone.bake - SEEN_WITHIN - run.slack:
        what = f"{write.node} is back {since:.3f} s after {free} others, which are watched for {zone.bake:g} s"
        yield Breach("early", zone.name, write.at, what)
