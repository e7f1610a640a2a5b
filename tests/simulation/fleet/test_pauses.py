"""People pause rules around outages: what is paused does not act, also after a takeover, and nothing is lost by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.fleet.draw_pauses import draw_pauses
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.people import PauseSeen
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import Seen, World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def test_pauses_are_really_taken_and_a_write_in_one_is_a_breach() -> None:
    scenario = load(dump(draw_pauses(0)))
    assert scenario == draw_pauses(0)
    seen = World(scenario).play()
    assert {pause.name for pause in seen.pauses} == {one.name for one in scenario.objects}
    route = next(route for route in seen.run.routes if route.writes)
    at = route.writes[0].at
    assert _paused_by(replace(seen, pauses=(PauseSeen(route.name, at - 2.5, at + 5, at + 5),))) == [route.name]
    assert _paused_by(replace(seen, pauses=(PauseSeen(route.name, at - 1.5, at + 0.001, at + 5),))) == []


def _paused_by(seen: Seen) -> list[str]:
    return [breach.route for breach in judge(seen) if breach.promise == "paused"]
