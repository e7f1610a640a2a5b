"""From a seed to a scenario in which people pause rules and resume them around an outage."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import Fault, PausedRule, Scenario

PAUSES = (4.0, 12.0, 25.0)
"""Lengths of pauses, in seconds, before they vary by up to a third."""


def draw_pauses(seed: int) -> Scenario:
    """Give zones and a route about an outage, each with a pause that begins before, in or after it; a decider dies."""
    random = Random(f"pauses {seed}")
    scenario = draw_zones(seed)
    first = scenario.faults[0]
    end = max(fault.at + fault.seconds for fault in scenario.faults)
    pauses = []
    for one in scenario.objects:
        begin = round(random.uniform(first.at - one.toleration, end + one.toleration), 3)
        pauses.append(PausedRule(one.name, begin, round(begin + random.choice(PAUSES) * random.uniform(0.7, 1.2), 3)))
    deciders = [name for name, roles in scenario.reactors if roles in ("all", "decider")]
    at = round(random.uniform(first.at, end + 10), 3)
    crash = Fault("crash", at, round(random.uniform(0.5, 5), 3), random.choice(deciders))
    faults = tuple(sorted((*scenario.faults, crash), key=lambda fault: fault.at))
    return replace(scenario, faults=faults, pauses=tuple(pauses))
