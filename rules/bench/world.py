"""A seeded world for any rules: what is true, what is heard of it, and what people do. All of it follows from the seed.

Sources see late, say things twice and in another order, lose words, know it no better for a while, die, and have
clocks that are a little wrong. What answers to the reactor's actions is in `world_hands`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bus.messages import FailbackZone, Health, IsolateZone, Observation, Pause, Resume, Taint, ZoneInventory
from rules.bench.play import at as at_
from rules.bench.world_cast import NODES, Cast, Speaker
from rules.bench.world_dice import Dice
from rules.bench.world_hands import Drift, Event, Resync, Vanish
from rules.bench.world_weather import Interval, Weather, away, weather
from rules.language.zone import ZoneIsolation

LATENCY = 0.25
"""Seconds from a look to its word, mostly."""
PACE = 0.45
"""An unchanged status is said again after this share of the time in which it goes stale."""
RESYNC = 600.0
"""Seconds between two full lists."""


@dataclass(frozen=True, slots=True)
class Eyes:
    """How well a source sees, and how its words travel."""

    loss: float = 0.02
    doubt: float = 0.01
    """Chance that a look gives no answer."""
    late: float = 0.05
    late_max: float = 12.0
    doubled: float = 0.02
    skew: float = 0.0
    """Seconds that its clock is ahead."""
    gone: list[Interval] = field(default_factory=list)


def script(cast: Cast, seed: int, seconds: float) -> list[Event]:
    """Give all that happens in a world whatever the reactor does, in the order of time."""
    dice = Dice(seed)
    sky = weather(cast, dice, seconds)
    events: list[Event] = []
    for speaker in cast.speakers:
        events += _words(speaker, sky, dice.of("eyes", speaker.target, speaker.signal), seconds)
    events += _inventory(cast, sky, dice.of("inventory"), seconds)
    events += _people(cast, dice.of("people"), seconds)
    return sorted(events, key=lambda event: event[0])


# --- what is said ----------------------------------------------------------------------------------------------------


def _words(speaker: Speaker, sky: Weather, dice: Dice, seconds: float) -> Iterator[Event]:
    eyes = Eyes(
        skew=dice.pick((0.0, 0.0, -1.0, 1.0)),
        gone=away(dice.of("away"), seconds) if dice.chance(0.3) else [],
        late_max=dice.pick((2.0, 12.0)),
    )
    for second, status, resolved in _looks(speaker, sky, dice, seconds):
        if any(first <= second < last for first, last in eyes.gone) or dice.chance(eyes.loss):
            continue
        if dice.chance(eyes.doubt):
            status, resolved = Health.UNKNOWN, False
        word = Observation(
            target=speaker.target, signal=speaker.signal, status=status, resolved=resolved,
            observed_at=at_(max(second + eyes.skew, 0)), stale_seconds=speaker.stale,
        )  # fmt: skip
        heard = second + (dice.between(LATENCY, eyes.late_max) if dice.chance(eyes.late) else LATENCY)
        yield heard, word
        if dice.chance(eyes.doubled):
            yield heard + dice.between(LATENCY, 60), word


def _looks(speaker: Speaker, sky: Weather, dice: Dice, seconds: float) -> Iterator[tuple[float, Health, bool]]:
    """Give each second in which something is seen: on every change, and now and then while nothing changes."""
    pace = round(speaker.stale * PACE * 4) / 4
    bad = [span for span in sky.bad[speaker.target] if not dice.chance(0.05)]  # some troubles it does not see
    lag = dice.pick((0.25, 1.0, 5.0))
    seen = [(first + lag, last + lag) for first, last in bad if last - first > lag / 2]
    moments = {tick * pace: False for tick in range(int(seconds / pace) + 1)} | {
        second: True for span in seen for second in span if second < seconds
    }
    index, ended = 0, None
    for second in sorted(moments):
        while index < len(seen) and seen[index][1] <= second:
            ended, index = seen[index][1], index + 1
        is_bad = index < len(seen) and seen[index][0] <= second
        if not speaker.alert:
            yield second, Health.UNHEALTHY if is_bad else Health.HEALTHY, False
        elif is_bad:
            yield second, Health.UNHEALTHY, False
        elif ended is not None:  # an alert says that it is resolved, and Healthy only when that is confirmed
            proven = speaker.confirms and second >= ended + 30
            yield second, Health.HEALTHY if proven else Health.UNKNOWN, not proven


# --- what exists -----------------------------------------------------------------------------------------------------


def _inventory(cast: Cast, sky: Weather, dice: Dice, seconds: float) -> Iterator[Event]:
    for object_ in [*cast.routes, *cast.workloads]:
        yield from ((second, Resync(object_)) for second in _every(RESYNC, seconds))
        mine = dice.of("drift", object_)
        second = mine.between(0, 6 * 3600)
        while second < seconds:
            yield second, Vanish(object_, mine.between(30, 300)) if mine.chance(0.15) else Drift(object_, mine.roll())
            second += mine.between(600, 6 * 3600)
    for name, cluster in cast.clusters.items():
        mine = dice.of("cluster", name)
        tainted = away(mine.of("taint"), seconds, 12 * 3600.0)
        for second in _every(RESYNC, seconds):
            stands = any(first <= second < last for first, last in tainted)
            taints = (Taint(key="example.com/maintenance", effect="NoExecute"),) if stands else ()
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


def _people(cast: Cast, dice: Dice, seconds: float) -> Iterator[Event]:
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


def _zone_work(rule: ZoneIsolation, dice: Dice, seconds: float) -> Iterator[Event]:
    second = dice.between(600, 12 * 3600)
    while second < seconds:
        zone, force = dice.pick(rule.zones).name, dice.chance(0.2)
        yield second, _isolate(rule, zone, "bob", second, force=force)
        if dice.chance(0.3):  # somebody else asks for another zone at the same time
            yield second + 20, _isolate(rule, dice.pick(rule.zones).name, "eve", second + 20)
        second += dice.between(60, 2 * 3600)
        yield second, FailbackZone(rule=rule.name, zone=zone, by="bob", reason="INC-7", observed_at=at_(second))
        second += dice.between(3600, 16 * 3600)


def _isolate(rule: ZoneIsolation, zone: str, by: str, second: float, *, force: bool = False) -> IsolateZone:
    return IsolateZone(rule=rule.name, zone=zone, by=by, reason="INC-7", force=force, observed_at=at_(second))
