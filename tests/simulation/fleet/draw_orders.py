"""From a seed to a scenario in which people isolate zones and bring them back by hand, around an outage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import Order, OrderKind, Scenario

WHAT: tuple[tuple[OrderKind, int], ...] = (("isolate", 4), ("force-back", 3), ("back", 2), ("retry", 1))
LATER = (0.1, 1.0, 4.0, 12.0)
"""Seconds from one order to the next, before they vary: an isolation is aborted in its first moment, or much later."""


def draw_orders(seed: int) -> Scenario:
    """Give two zones about an outage, each with up to four orders that begin before, in or after it."""
    random = Random(f"orders {seed}")
    scenario = draw_zones(seed)
    begin, end = scenario.faults[0].at, max(fault.at + fault.seconds for fault in scenario.faults)
    zones = scenario.zones[:2]
    orders = [
        order
        for zone in zones
        for order in _orders(random, zone.name, random.uniform(begin - zone.toleration, end + zone.toleration))
    ]
    return replace(scenario, zones=zones, plans=scenario.plans[:1], orders=tuple(orders))


def _orders(random: Random, name: str, at: float) -> Iterator[Order]:
    kinds, weights = zip(*WHAT, strict=True)
    for _ in range(random.randint(1, 4)):
        what: OrderKind = random.choices(kinds, weights)[0]
        yield Order(name, round(at, 3), what)
        at += random.choice(LATER) * random.uniform(0.7, 1.3)
