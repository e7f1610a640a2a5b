"""Zones that fail and recover about outages: isolated and brought back by what is known, and no promise is excused."""

from __future__ import annotations

import os

import pytest

from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.report import unbroken
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import World

SEEDS = int(os.environ.get("SIM_SEEDS", "1000")) // 50
BLOCK = 5

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_promise_is_kept_for_zones_about_outages(first: int) -> None:
    for seed in range(first, min(first + BLOCK, SEEDS)):
        unbroken(draw_zones(seed))


def test_zones_are_really_isolated_and_brought_back() -> None:
    scenario = load(dump(draw_zones(0)))
    assert scenario == draw_zones(0)
    zones = [route for route in World(scenario).play().run.routes if route.name.startswith("zone-")]
    assert [True, False] in [[zone.away(write) for write in zone.writes] for zone in zones]
