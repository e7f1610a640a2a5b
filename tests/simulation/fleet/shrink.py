"""From a scenario that breaks a promise to a shorter one that still breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.simulation.fleet.scenario import Plan, Scenario

T = TypeVar("T")
RUNS_MAX = 120
"""Largest number of scenarios that are tried: some ten seconds."""


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], *, runs_max: int = RUNS_MAX) -> Scenario:
    """Leave out whatever is not needed for the failure, the largest parts first."""
    left = runs_max
    shorter = True
    while shorter:
        shorter = False
        for candidate in _shorter(scenario):
            if left == 0:
                return scenario
            left -= 1
            if fails(candidate):
                scenario, shorter = candidate, True
                break
    return scenario


def _shorter(scenario: Scenario) -> Iterator[Scenario]:
    for number in range(len(scenario.faults)):
        yield replace(scenario, faults=_without(scenario.faults, number))
    for number in range(len(scenario.edits)):
        yield replace(scenario, edits=_without(scenario.edits, number))
    if len(scenario.plans) > 1:
        for number in range(len(scenario.plans)):
            yield replace(scenario, plans=_without(scenario.plans, number))
    for part in ("pauses", "zones", "clusters", "workloads", "answers", "orders"):
        things: tuple[Any, ...] = getattr(scenario, part)
        for number in range(len(things)):
            without: dict[str, Any] = {part: _without(things, number)}
            yield replace(scenario, **without)
    if scenario.shuffled:
        yield replace(scenario, shuffled=False)
    if scenario.skew:
        yield replace(scenario, skew=0.0)
    for number, plan in enumerate(scenario.plans):
        for which in range(len(plan.outages)):
            yield replace(scenario, plans=_instead(scenario.plans, number, which))


def _without(things: tuple[T, ...], number: int) -> tuple[T, ...]:
    return (*things[:number], *things[number + 1 :])


def _instead(plans: tuple[Plan, ...], number: int, which: int) -> tuple[Plan, ...]:
    plan = replace(plans[number], outages=_without(plans[number].outages, which))
    return (*plans[:number], plan, *plans[number + 1 :])
