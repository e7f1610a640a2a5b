"""From a seed to a scenario in which workloads fail and recover about outages of the bus, all processes or the API."""

from __future__ import annotations

from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.draw import CALM, FLEETS, SKEW, TOLERATIONS, struck
from tests.simulation.fleet.draw_edits import KINDS
from tests.simulation.fleet.scenario import Fault, Plan, Scenario

RECOVERIES = (2.0, 5.0)
WORKLOADS = 3
CRASHES_WITHIN = 4.0
"""Seconds after a window's end within which a reactor is killed: it places, marks or purges a copy then."""


def draw_workloads(seed: int) -> Scenario:
    """Give one in which one or two of them are away, or all writes fail, while workloads, and one route, are bad. In
    half of them a reactor is killed in the midst of a move.

    Three of these: bad before, one recovers meanwhile, one recovers and fails again, one stays bad. One fails and
    recovers unseen. One flaps until a moment before, and then stays bad.
    """
    random = Random(f"workloads {seed}")
    toleration, recovery = random.choice(TOLERATIONS[1:]), random.choice(RECOVERIES)
    at = round(CALM + 2 * toleration + random.uniform(0, 2), 3)
    faults = struck(random, seed, KINDS, at, toleration)
    end = max(fault.at + fault.seconds for fault in faults)
    length, first = end - at, round(at - random.uniform(0.1, 0.95) * toleration, 3)
    late = round(end + toleration + random.uniform(18, 22), 3)
    last = round(at - random.uniform(0.1, 0.5) * toleration, 3)
    spells = (
        (Span(first, round(at + random.uniform(0.2, 0.95) * length, 3)),),
        (Span(first, round(at + length / 3, 3)), Span(round(at + 2 * length / 3, 3), late)),
        (Span(first, late),),
        (Span(round(at + length / 4, 3), round(at + 3 * length / 4, 3)),),
        (Span(round(last - 0.8 * toleration, 3), round(last - 0.4, 3)), Span(last, late)),
    )
    reactors = random.choice(FLEETS)
    if random.random() < 0.5:
        moment = round(max(first + toleration, end) + random.uniform(0, CRASHES_WITHIN), 3)
        who = random.choice([name for name, _ in reactors])
        faults.append(Fault("crash", moment, 1.0, who, random.randint(1, 12), late=random.random() < 0.5))
    some = sorted(random.sample(range(len(spells)), WORKLOADS))
    workloads = tuple(Plan(f"workload-{number}", toleration, recovery, spells[number]) for number in some)
    plans = (Plan("route-0", toleration, recovery, random.choice(spells)),)
    return Scenario(
        seed, reactors, plans, tuple(faults), shuffled=seed % 2 == 1, skew=SKEW, workloads=workloads,
    )  # fmt: skip
