"""People isolate zones and bring them back by hand around outages: the last order counts, and excuses only itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reactor.audit.spans import Span
from tests.judge.checker import check
from tests.judge.object_history import RouteHistory, Run, Write
from tests.simulation.fleet.draw_orders import draw_orders
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.judge_orders import judge_orders
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


@pytest.mark.parametrize(("at", "excused"), [(25.0, False), (50.4, True)])
def test_an_order_excuses_the_end_of_no_later_isolation(at: float, excused: bool) -> None:
    at_home, away = {"zone-0": 1, "b": 0}, {"zone-0": 0, "b": 1}
    writes = ((15.5, away), (26.0, at_home), (45.5, away), (50.5, at_home))
    zone = RouteHistory(
        "zone-0", "zone-0", toleration=5.0, recovery=5.0, outages=(Span(10.0, 20.0), Span(40.0, 50.0)),
        others={"b": ()}, writes=tuple(Write(when, weights, n, 1) for n, (when, weights) in enumerate(writes, 1)),
    )  # fmt: skip
    run = Run(routes=(zone,), end=80.0)
    found = check(run).breaches
    assert [breach.at for breach in found] == [50.5], "it is back before it was healthy for its recovery"
    left = [*judge_orders(zone, run, [OrderSeen(Order("zone-0", at, "back"), at, at)], found)]
    assert left == ([] if excused else found)
