"""Faults of a world: the times at which targets are bad, and at which their sources are away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.signal_outages import SignalOutage, around
from rules.rehearsal.world.world_topology import Topology

Interval = tuple[float, float]
"""From this second on, up to that one."""
GAPS = (5400.0, 2700.0, 1200.0)
"""Calm, rough, stormy: seconds between two troubles of one target, on average."""
MASS_EVERY = 6 * 3600.0
AWAY_EVERY = 4 * 3600.0
CALM = 60.0
"""Seconds at the beginning in which all is well; every fourth world has none: things may be bad from the start."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Seconds in which each target is bad."""

    bad: dict[str, list[Interval]]

    def is_bad(self, target: str, second: float) -> bool:
        """True if the target is bad in this second."""
        return any(first <= second < last for first, last in self.bad.get(target, ()))


def fault_plan(cast: Topology, dice: SeededRandom, seconds: float, outages: Sequence[SignalOutage] = ()) -> FaultPlan:
    """Draw troubles, flaps, slow degradation, failures of many at once, and what happens while nothing is heard."""
    gap = dice.of("gap").pick(GAPS)
    first = 0.0 if dice.of("cold").chance(0.25) else CALM
    bad = {
        target: list(_troubles(sorted(tolerations), dice.of("bad", target), first, seconds, gap))
        for target, tolerations in sorted(cast.tolerations.items())
    }
    for together in _masses(sorted(bad), dice.of("mass"), first, seconds):
        for target, interval in together:
            bad[target].append(interval)
    for target, intervals in bad.items():
        mine = dice.of("outages", target)
        for outage in outages:
            if mine.chance(0.5):
                spans = around(outage, mine.pick(sorted(cast.tolerations[target])), mine)
                intervals += [(begin, min(end, seconds)) for begin, end in spans if begin >= first]
    return FaultPlan({target: merged(intervals) for target, intervals in bad.items()})


def _troubles(
    tolerations: Sequence[float], dice: SeededRandom, first: float, seconds: float, gap: float
) -> Iterator[Interval]:
    at = first + dice.between(0, 2 * gap)
    while at < seconds:
        bears = dice.pick(tolerations)
        kind = dice.roll()
        if kind < 0.6:
            length = dice.pick((5.0, 0.5 * bears, 0.97 * bears, bears + 5, bears + 40, 2 * bears + 120, bears + 1500))
            lengths = [(length, 0.0)]
        elif kind < 0.8:  # flaps
            lengths = [
                (dice.between(3, max(0.9 * bears, 10)), dice.between(5, 60)) for _ in range(3 + int(dice.roll() * 6))
            ]
        else:  # slow degradation: worse and worse, with less and less time between
            lengths = [(max(share * bears, 3.0), 90 * (1 - share / 2)) for share in (0.1, 0.3, 0.6, 0.9, 1.3)]
        for length, pause in lengths:
            end = at + max(round(length * 4) / 4, 1.0)
            yield at, min(end, seconds)
            at = end + pause
        at += dice.between(5, 2 * gap)


def _masses(
    targets: Sequence[str], dice: SeededRandom, first: float, seconds: float
) -> Iterator[list[tuple[str, Interval]]]:
    """Many targets of one kind, bad at once: the network, a bad release, or what the reactor sees with."""
    kinds = sorted({target.split("/")[0] for target in targets})
    at = first + dice.between(0, 2 * MASS_EVERY)
    while at < seconds and kinds:
        kind, share, length = dice.pick(kinds), dice.pick((0.5, 0.8, 1.0)), dice.pick((60.0, 400.0, 1500.0))
        yield [
            (target, (at + dice.between(0, 5), min(at + length, seconds)))
            for target in targets
            if target.startswith(f"{kind}/") and dice.chance(share)
        ]
        at += dice.between(600, 2 * MASS_EVERY)


def away(dice: SeededRandom, seconds: float, every: float = AWAY_EVERY) -> list[Interval]:
    """Draw when a source is away: a source that has died, an API server that does not answer."""
    out = []
    at = dice.between(0, 2 * every)
    while at < seconds:
        end = at + dice.pick((60.0, 200.0, 900.0))
        out.append((at, min(end, seconds)))
        at = end + dice.between(60, 2 * every)
    return out


def merged(intervals: list[Interval]) -> list[Interval]:
    """Give the same seconds in order and without overlaps."""
    out: list[Interval] = []
    for first, last in sorted(intervals):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        elif last > first:
            out.append((first, last))
    return out
