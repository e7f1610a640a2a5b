"""From a seed to a scenario in which whole clusters go away, with all that runs there, about other outages."""

from __future__ import annotations

from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.draw import CALM, FLEETS, SKEW, TOLERATIONS, struck
from tests.simulation.fleet.draw_edits import KINDS
from tests.simulation.fleet.scenario import Plan, Scenario

RECOVERIES = (2.0, 5.0)
MOVED = 7.0
"""Seconds beyond its toleration after which a cluster that is bad is tainted, and left."""
ROUTES = (3, 1)
"""Number of routes whose primary is in the first cluster, and in the second."""


def draw_clusters(seed: int) -> Scenario:
    """Give one in which one or two of the bus, all processes and the API server are away, or all writes fail, while
    two clusters are bad or on their way back. All routes of a cluster fail at once with it, and return with it.

    Two of these: bad before, one recovers meanwhile, one recovers and fails again, one stays bad. One fails and
    recovers unseen. Tainted before, one recovers just before and fails again unseen, one recovers meanwhile.
    """
    random = Random(f"clusters {seed}")
    toleration, recovery = random.choice(TOLERATIONS[1:]), random.choice(RECOVERIES)
    before = round(CALM + random.uniform(0, 2), 3)
    at = round(before + 2 * toleration + MOVED, 3)
    faults = struck(random, seed, KINDS, at, toleration)
    end = max(fault.at + fault.seconds for fault in faults)
    length, first = end - at, round(at - random.uniform(0.1, 0.95) * toleration, 3)
    late = round(end + toleration + random.uniform(18, 22), 3)
    good = round(at - random.uniform(0.1, 1.1) * recovery, 3)
    spells = (
        (Span(first, round(at + random.uniform(0.2, 0.95) * length, 3)),),
        (Span(first, round(at + length / 3, 3)), Span(round(at + 2 * length / 3, 3), late)),
        (Span(first, late),),
        (Span(round(at + length / 4, 3), round(at + 3 * length / 4, 3)),),
        (Span(before, good), Span(round(at + random.uniform(0.05, 0.95) * length, 3), late)),
        (Span(before, round(at + random.uniform(0.05, 0.95) * length, 3)),),
    )
    some = random.sample(range(len(spells)), len(ROUTES))
    clusters = tuple(Plan(f"cluster-{number}", toleration, recovery, spells[number]) for number in some)
    plans = tuple(
        Plan(f"route-{number}-{place}", random.choice(TOLERATIONS), recovery, spells[number])
        for number, count in zip(some, ROUTES, strict=True)
        for place in range(count)
    )
    return Scenario(
        seed, random.choice(FLEETS), plans, tuple(faults), shuffled=seed % 2 == 1, skew=SKEW, clusters=clusters,
    )  # fmt: skip
