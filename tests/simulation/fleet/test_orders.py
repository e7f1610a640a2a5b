"""People isolate zones and bring them back by hand around outages: the last order counts, and excuses only itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.fleet.draw_orders import draw_orders
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.orders import OrderSeen
from tests.simulation.fleet.scenario import Order, dump, load
from tests.simulation.fleet.world import Seen, World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


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
