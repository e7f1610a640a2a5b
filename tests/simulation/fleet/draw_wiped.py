"""From a seed to a scenario in which the bus goes away while windows are open, and comes back with an empty store."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.fleet.draw_together import draw_together
from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import Kind, Scenario

OFTEN: tuple[Kind, ...] = ("bus-wiped", "all-gone", "api-down")


def draw_wiped(seed: int) -> Scenario:
    """Give one with the outages of `draw_together`, of which the first is a wiped bus, in every sixth seed the second.
    In every second one it is alone."""
    scenario = draw_together(seed)
    faults = list(scenario.faults[:1] if seed % 2 else scenario.faults)
    place = 1 if seed % 3 == 0 and len(faults) > 1 else 0
    faults[place] = replace(faults[place], kind="bus-wiped")
    return replace(scenario, faults=tuple(faults))


def draw_wiped_zones(seed: int) -> Scenario:
    """Give one in which that happens while zones are isolated, are about to be, or are on their way back."""
    scenario = draw_zones(seed)
    first, *others = scenario.faults
    return replace(scenario, faults=(replace(first, kind="bus-wiped"), *others))
