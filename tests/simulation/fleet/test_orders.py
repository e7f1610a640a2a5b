"""People isolate zones and bring them back by hand around outages: the last order counts, and excuses only itself."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.simulation.fleet.draw_orders import draw_orders
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.orders import OrderSeen
from tests.simulation.fleet.report import unbroken
from tests.simulation.fleet.scenario import Order, dump, load
from tests.simulation.fleet.world import Seen, World

SEEDS = int(os.environ.get("SIM_SEEDS", "1000")) // 50
BLOCK = 5

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_promise_is_kept_while_people_give_orders_to_zones(first: int) -> None:
    for seed in range(first, min(first + BLOCK, SEEDS)):
        unbroken(draw_orders(seed))


def test_orders_are_really_given_and_one_that_is_not_carried_out_is_a_breach() -> None:
    scenario = draw_orders(0)
    assert load(dump(scenario)) == scenario
    seen = World(scenario).play()
    assert len(seen.orders) == len(scenario.orders)
    zone = next(route for route in seen.run.routes if route.name == scenario.zones[0].name)
    assert judge(seen) == []
    assert zone.is_away(seen.run.end)
    late = seen.run.end - 10
    ignored = OrderSeen(Order(zone.name, late, "force-back"), late, late)
    assert _broken(replace(seen, orders=(*seen.orders, ignored)), zone.name) == ["disobeyed"]


def _broken(seen: Seen, name: str) -> list[str]:
    return [breach.promise for breach in judge(seen) if breach.route == name]
