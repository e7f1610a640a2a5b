"""Zones that fail and recover about outages: isolated and brought back by what is known, and no promise is excused."""

from __future__ import annotations

import pytest

from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def test_zones_are_really_isolated_and_brought_back() -> None:
    scenario = load(dump(draw_zones(0)))
    assert scenario == draw_zones(0)
    zones = [route for route in World(scenario).play().run.routes if route.name.startswith("zone-")]
    assert [True, False] in [[zone.away(write) for write in zone.writes] for zone in zones]
