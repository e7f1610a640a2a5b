"""The targets that a ZoneIsolation reads: its zones, and what stops a drill."""

from __future__ import annotations

from collections.abc import Iterator

from rules.kinds.zone.model import ZoneIsolation
from rules.rulefile.feeds import Consumer, FeedNeed
from rules.rulefile.sources import LoadedSource, NodeWatch


def needs(rule: ZoneIsolation) -> Iterator[FeedNeed]:
    """Give its zones; one that is observed is enough."""
    yield FeedNeed((), {rule.target(zone.name): ("zones", index) for index, zone in enumerate(rule.zones)})


def consumers(rule: ZoneIsolation) -> Iterator[Consumer]:
    """Give its zones, by the signals of both ways, and the targets that stop a drill."""
    signals = rule.signals
    if signals is not None:
        signals += rule.failback.signals or ()
    for pattern in rule.practice.stop_signals if rule.practice is not None else ():
        yield Consumer(pattern)
    for need in needs(rule):
        yield from (Consumer(target, signals) for target in need.targets)


def lists(rule: ZoneIsolation, source: LoadedSource) -> bool:
    """True if the rule needs the nodes of the zones that the source lists."""
    return isinstance(source, NodeWatch) and rule.cluster_name == source.cluster
