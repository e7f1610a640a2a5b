"""From a seed to a scenario of outages that overlap: one begins while another is still on."""

from __future__ import annotations

from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.draw import CALM, FLEETS, GONE, RECOVERIES, SHARES, SKEW, TOLERATIONS
from tests.simulation.fleet.scenario import Fault, Plan, Scenario

APART = 6.0
"""Seconds within which all of them begin."""


def draw_together(seed: int) -> Scenario:
    """Give one in which up to three of the bus, all processes and the API server are away, one within the other.

    One route recovers meanwhile, one recovers and fails again, one stays bad, one fails and recovers unseen.
    """
    random = Random(f"together {seed}")
    toleration, recovery = random.choice(TOLERATIONS[1:]), random.choice(RECOVERIES)
    at = round(CALM + toleration + random.uniform(0, 2), 3)
    kinds = random.sample(GONE, random.choice((2, 3, 3)))
    faults: list[Fault] = []
    for kind in kinds:
        begin = at if not faults else at + random.uniform(0, min(APART, max(one.seconds for one in faults)))
        length = random.choice(SHARES) * toleration + random.uniform(-0.3, 0.8)
        faults.append(Fault(kind, round(begin, 3), round(length, 3)))
    length = max(one.at + one.seconds for one in faults) - at
    first = round(at - random.uniform(0.1, 0.95) * toleration, 3)
    late = round(at + length + toleration + random.uniform(18, 22), 3)
    spells = (
        (Span(first, round(at + random.uniform(0.2, 0.95) * length, 3)),),
        (Span(first, round(at + length / 3, 3)), Span(round(at + 2 * length / 3, 3), late)),
        (Span(first, late),),
        (Span(round(at + length / 4, 3), round(at + 3 * length / 4, 3)),),
    )
    plans = tuple(Plan(f"route-{number}", toleration, recovery, one) for number, one in enumerate(spells))
    reactors = random.choice(FLEETS)
    return Scenario(seed, reactors, plans, tuple(sorted(faults, key=lambda one: one.at)), seed % 2 == 1, SKEW)
