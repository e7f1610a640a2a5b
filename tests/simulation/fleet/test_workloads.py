"""Workloads that fail and recover about outages: moved by what is known, and no promise is excused."""

from __future__ import annotations

import pytest

from tests.simulation.fleet.draw_workloads import draw_workloads
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def test_workloads_are_really_moved() -> None:
    scenario = load(dump(draw_workloads(0)))
    assert scenario == draw_workloads(0)
    workloads = [route for route in World(scenario).play().run.routes if route.name.startswith("workload-")]
    assert [True] in [[workload.away(write) for write in workload.writes] for workload in workloads]
