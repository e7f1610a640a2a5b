"""Whole clusters that go away, with all that runs there: tainted and left by what is known, and nothing is excused."""

from __future__ import annotations

import pytest

from tests.simulation.fleet.draw_clusters import ROUTES, draw_clusters
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def test_a_cluster_is_really_tainted_and_left_by_all_its_routes_and_all_return() -> None:
    scenario = load(dump(draw_clusters(0)))
    assert scenario == draw_clusters(0)
    first = scenario.clusters[0]
    with_it = [plan.name for plan in scenario.plans if plan.outages == first.outages]
    assert len(with_it) == ROUTES[0]
    histories = {one.name: one for one in World(scenario).play().run.routes}
    for name in (first.name, *with_it):
        assert [histories[name].away(write) for write in histories[name].writes] == [True, False]
