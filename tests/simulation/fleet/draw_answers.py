"""From a seed to a scenario in which people approve and reject what rules ask for, around an outage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.judge.object_history import good
from tests.simulation.fleet.draw_clusters import draw_clusters
from tests.simulation.fleet.draw_workloads import draw_workloads
from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import Answer, Fault, Plan, Scenario

EXPIRES = (6.0, 12.0, 40.0)
"""Seconds for which a request is good: shorter than an outage, about as long, or longer."""
REJECTED = (4.0, 15.0, 60.0)
"""Seconds for which what was rejected is not asked for again."""
HASTE = 0.4
"""Probability of an answer within a second of what was shown."""


def draw_answers(seed: int) -> Scenario:
    """Give a cluster and its routes about an outage, each with up to three answers; a decider dies."""
    scenario = draw_clusters(seed)
    cluster = scenario.clusters[0]
    plans = tuple(plan for plan in scenario.plans if plan.outages == cluster.outages)[:2]
    return _answered(replace(scenario, plans=plans, clusters=(cluster,)), Random(f"answers {seed}"))


def draw_zone_answers(seed: int) -> Scenario:
    """Give the same for zones."""
    return _answered(draw_zones(seed), Random(f"zone answers {seed}"))


def draw_workload_answers(seed: int) -> Scenario:
    """Give the same for workloads."""
    return _answered(draw_workloads(seed), Random(f"workload answers {seed}"))


def _answered(scenario: Scenario, random: Random) -> Scenario:
    """Give it with rules that ask, and people who answer.

    Answers come at once, about when the request expires, after it has, or when something else may be asked; some are
    given twice, some say the opposite of the one before, and some name no request.
    """
    expires, outages = random.choice(EXPIRES), scenario.objects[-1].outages
    answers = [answer for one in scenario.objects for answer in _answers(random, one, expires)]
    # The rule of a zone asks before its way back, too.
    back = [replace(zone, outages=good(zone.outages)[1:], toleration=zone.recovery) for zone in scenario.zones]
    answers += [answer for one in back for answer in _answers(random, one, expires)]
    deciders = [name for name, roles in scenario.reactors if roles in ("all", "decider")]
    at = round(random.uniform(outages[0].begin, outages[-1].end), 3)
    crash = Fault("crash", at, round(random.uniform(0.5, 5), 3), random.choice(deciders))
    faults = tuple(sorted((*scenario.faults, crash), key=lambda fault: fault.at))
    return replace(scenario, faults=faults, expires=expires, answers=tuple(answers))


def _answers(random: Random, one: Plan, expires: float) -> Iterator[Answer]:
    """Give the answers to one rule, in the order of their looks."""
    for outage in one.outages:
        look = outage.begin + one.toleration + random.uniform(-2, 4)
        for _ in range(random.choice((0, 1, 1, 2))):
            hasty = random.random() < HASTE
            after = random.uniform(0, 1) if hasty else random.choice((0.5, 1.0, 1.5)) * expires + random.uniform(-1, 1)
            yes, named = random.random() < 0.7, random.random() < 0.8
            until = 0.0 if yes else random.choice(REJECTED)
            yield Answer(one.name, round(look, 3), round(max(after, 0.0), 3), yes, until, named)
            look += random.choice((0.0, 1.0, after + random.uniform(-1, 3)))
