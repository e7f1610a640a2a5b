"""Model of a cluster of zones: when a zone has to be isolated by the truth, and how its nodes are after some writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from reactor.audit.spans import Span, merged
from tests.judge.object_history import Run, good
from tests.judge.spells import SEEN_WITHIN, common, over
from tests.judge.zone_history import CORDONED, EXCLUDED, FENCED, NONE, Marks, ZoneHistory, ZoneWrite

STEPS_SECONDS = 20.0
"""Seconds of good time from the first step of an isolation, or of its way back, to the last."""
HOLDS: Marks = frozenset((FENCED, CORDONED, EXCLUDED))
FENCES: Marks = frozenset((FENCED, CORDONED))


@dataclass
class Cluster:
    """The zone's nodes as they are after some writes."""

    zone: ZoneHistory
    marks: dict[str, Marks] = field(default_factory=dict)
    begun_at: float | None = None
    """Time at which the first step was done, which was right then, and nothing was opened since; None: it was not."""
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
            self.begun_at = None
        if lost & FENCES:
            self.released.append(write.at)
        if gained & FENCES:
            self.released.clear()
            self.begun_at = write.at if founded and self.all_have(FENCED, CORDONED) else None

    def goes_on(self, at: float) -> bool:
        """True if the rest of its isolation may be done: its witnesses have not seen it well since it was begun."""
        if self.begun_at is None:
            return False
        since, seen = Span(self.begun_at, at), SEEN_WITHIN + self.zone.period
        well = common(common(good(any_bad(self.zone)), good(merged(self.zone.blind))), [since])
        return all(one.end - one.begin <= seen for one in well)


def recent(zone: ZoneHistory, run: Run, at: float) -> Span:
    """Give the time of which a write may still not know the end."""
    return Span(at - SEEN_WITHIN - zone.period, at + run.slack)


def witnessed(zone: ZoneHistory) -> list[list[Span]]:
    """Give when each witness saw it bad: breaks shorter than its period it does not see."""
    return [merged(spans, gap=zone.period) for spans in zone.witnesses.values()]


def both_bad(zone: ZoneHistory) -> list[Span]:
    """Give when all witnesses saw it bad."""
    return reduce(common, witnessed(zone))


def any_bad(zone: ZoneHistory) -> list[Span]:
    """Give when any witness saw it bad."""
    return merged([span for spans in witnessed(zone) for span in spans])


def to_isolate(zone: ZoneHistory, slack: float) -> list[Span]:
    """Give when the zone has to be isolated: both have seen it bad for the toleration, and the others are well."""
    return common(over(both_bad(zone), zone.toleration - slack), good(zone.elsewhere))


def at_the_time(spells: Iterable[Span], at: float) -> Span | None:
    """Give the one that has begun and not ended then."""
    return next((one for one in spells if one.begin <= at < one.end), None)
