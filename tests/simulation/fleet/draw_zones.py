"""From a seed to a scenario in which zones fail and recover about outages of the bus, all processes or the API."""

from __future__ import annotations

from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.draw import CALM, FLEETS, GONE, SKEW, TOLERATIONS, struck
from tests.simulation.fleet.scenario import Plan, Scenario

RECOVERIES = (2.0, 5.0)
ISOLATED = 7.0
"""Seconds beyond its toleration after which a zone that is bad is isolated."""
ZONES = 3


def draw_zones(seed: int) -> Scenario:
    """Give one in which one or two of them are away while zones, and one route, are bad or on their way back.

    Three of these: bad before, one recovers meanwhile, one recovers and fails again, one stays bad. One fails and
    recovers unseen. Isolated before, one recovers just before and fails unseen for a moment, one recovers meanwhile.
    """
    random = Random(f"zones {seed}")
    toleration, recovery = random.choice(TOLERATIONS[1:]), random.choice(RECOVERIES)
    before = round(CALM + random.uniform(0, 2), 3)
    at = round(before + 2 * toleration + ISOLATED, 3)
    faults = struck(random, seed, GONE, at, toleration)
    end = max(fault.at + fault.seconds for fault in faults)
    length, first = end - at, round(at - random.uniform(0.1, 0.95) * toleration, 3)
    late = round(end + toleration + random.uniform(18, 22), 3)
    good = round(at - random.uniform(0.1, 0.95) * recovery, 3)
    spells = (
        (Span(first, round(at + random.uniform(0.2, 0.95) * length, 3)),),
        (Span(first, round(at + length / 3, 3)), Span(round(at + 2 * length / 3, 3), late)),
        (Span(first, late),),
        (Span(round(at + length / 4, 3), round(at + 3 * length / 4, 3)),),
        (Span(before, good), Span(round(at + length / 4, 3), round(end - random.uniform(0.05, 0.5) * length, 3))),
        (Span(before, round(at + random.uniform(0.05, 0.95) * length, 3)),),
    )
    some = sorted(random.sample(range(len(spells)), ZONES))
    zones = tuple(Plan(f"zone-{number}", toleration, recovery, spells[number]) for number in some)
    plans = (Plan("route-0", toleration, recovery, random.choice(spells)),)
    return Scenario(
        seed, random.choice(FLEETS), plans, tuple(faults), shuffled=seed % 2 == 1, skew=SKEW, zones=zones,
    )  # fmt: skip
