"""A seeded world for any rules: what is true, what is observed of it, and what people do. All of it follows from the
seed.

Sources (`world_eyes`) see late, say things twice and in another order, lose words, know it no better for a while, die,
are not heard in outages, and have clocks that are a little wrong. What answers to the reactor's actions is in
`world_hands`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bus.messages import FailbackZone, IsolateZone, Pause, Resume, Taint, ZoneInventory
from rules.kinds.zone.model import ZoneIsolation
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.world.fault_plan import FaultPlan, away, fault_plan
from rules.rehearsal.world.faulty_executor import ForeignWrite, Resync, Vanish, WorldEvent
from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.signal_outages import SignalOutage, outages
from rules.rehearsal.world.source_views import SourceViews, source_views
from rules.rehearsal.world.world_topology import NODES, Topology

RESYNC = 600.0
"""Seconds between two full lists."""


@dataclass(frozen=True, slots=True)
class World:
    """Sources, outages and events of a world: all that happens whatever the reactor does."""

    views: SourceViews
    outages: Sequence[SignalOutage]
    events: Sequence[WorldEvent]
    """In the order of time."""


def world(cast: Topology, seed: int, seconds: float) -> World:
    """Give the world of this seed."""
    dice = SeededRandom(seed)
    tolerations = sorted(set().union(*cast.tolerations.values()))
    signals = sorted({speaker.signal for speaker in cast.speakers})
    silent = outages(dice.of("outages"), tolerations, signals, seconds)
    sky = fault_plan(cast, dice, seconds, silent)
    looking = source_views(cast, sky, silent, dice, seconds)
    events: list[WorldEvent] = [word for eye in looking.of.values() for word in eye.words()]
    events += _inventory(cast, sky, dice.of("inventory"), seconds)
    events += _people(cast, dice.of("people"), seconds)
    return World(looking, silent, sorted(events, key=lambda event: event[0]))


# --- what exists -----------------------------------------------------------------------------------------------------


def _inventory(cast: Topology, sky: FaultPlan, dice: SeededRandom, seconds: float) -> Iterator[WorldEvent]:
    for object_ in [*cast.routes, *cast.workloads]:
        yield from ((second, Resync(object_)) for second in _every(RESYNC, seconds))
        mine = dice.of("drift", object_)
        second = mine.between(0, 6 * 3600)
        while second < seconds:
            yield (
                second,
                Vanish(object_, mine.between(30, 300)) if mine.chance(0.15) else ForeignWrite(object_, mine.roll()),
            )
            second += mine.between(600, 6 * 3600)
    for name, cluster in cast.clusters.items():
        mine = dice.of("cluster", name)
        tainted = away(mine.of("taint"), seconds, 12 * 3600.0)
        for second in _every(RESYNC, seconds):
            is_tainted = any(first <= second < last for first, last in tainted)
            taints = (Taint(key="example.com/maintenance", effect="NoExecute"),) if is_tainted else ()
            room = 10 if mine.chance(0.7) else int(mine.roll() * 6)
            changes = {"available_replicas": room, "taints": taints, "observed_at": at_(second)}
            yield second, cluster.model_copy(update=changes)
    for name, zones in cast.zones.items():
        mine = dice.of("zones", name)
        unreachable = away(mine, seconds, 12 * 3600.0)
        targets = {zone: f"zone/{name}/{zone}" for zone in zones.zones}
        moments = {*_every(RESYNC / 2, seconds)}
        moments |= {edge + 5 for target in targets.values() for span in sky.bad.get(target, ()) for edge in span}
        for second in sorted(moment for moment in moments if moment < seconds):
            bad = {zone for zone, target in targets.items() if sky.is_bad(target, second)}
            nodes = {
                zone: ZoneInventory(nodes=NODES, healthy_nodes=NODES if zone not in bad else int(mine.roll() * NODES))
                for zone in zones.zones
            }
            reachable = not any(first <= second < last for first, last in unreachable)
            view = {"zones": nodes, "api_reachable": reachable, "observed_at": at_(second)}
            yield second, zones.model_copy(update=view)


def _every(pace: float, seconds: float) -> Iterator[float]:
    return (tick * pace for tick in range(int(seconds / pace) + 1))


# --- what people do --------------------------------------------------------------------------------------------------


def _people(cast: Topology, dice: SeededRandom, seconds: float) -> Iterator[WorldEvent]:
    second = dice.between(600, 12 * 3600)
    while second < seconds and cast.rules:
        rule = dice.pick([*(one.name for one in cast.rules), "*"])
        yield second, Pause(rule=rule, by="ann", reason="upgrade", observed_at=at_(second))
        second += dice.between(30, 1800)
        yield second, Resume(rule=rule, by="ann", reason="done", observed_at=at_(second))
        second += dice.between(1800, 16 * 3600)
    for one in cast.rules:
        if isinstance(one, ZoneIsolation):
            yield from _zone_work(one, dice.of("zones", one.name), seconds)


def _zone_work(rule: ZoneIsolation, dice: SeededRandom, seconds: float) -> Iterator[WorldEvent]:
    second = dice.between(600, 12 * 3600)
    while second < seconds:
        zone, force = dice.pick(rule.zones).name, dice.chance(0.2)
        yield second, _isolate(rule, zone, "bob", second, force=force)
        if dice.chance(0.3):  # another writer asks for another zone at the same time
            yield second + 20, _isolate(rule, dice.pick(rule.zones).name, "eve", second + 20)
        second += dice.between(60, 2 * 3600)
        yield second, FailbackZone(rule=rule.name, zone=zone, by="bob", reason="INC-7", observed_at=at_(second))
        second += dice.between(3600, 16 * 3600)


def _isolate(rule: ZoneIsolation, zone: str, by: str, second: float, *, force: bool = False) -> IsolateZone:
    return IsolateZone(rule=rule.name, zone=zone, by=by, reason="INC-7", force=force, observed_at=at_(second))
