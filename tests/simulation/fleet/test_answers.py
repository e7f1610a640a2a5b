"""People approve and reject what rules ask for, around outages: no act without a yes that counts, and none is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulation.fleet.answers import AnswerSeen
from tests.simulation.fleet.draw_answers import draw_answers, draw_workload_answers, draw_zone_answers
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.scenario import Scenario, dump, load
from tests.simulation.fleet.world import Seen, World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.parametrize("draw", [draw_answers, draw_zone_answers, draw_workload_answers])
def test_answers_are_really_given_and_an_act_without_a_yes_or_after_a_no_is_a_breach(
    draw: Callable[[int], Scenario],
) -> None:
    scenario = next(one for one in map(draw, range(40)) if any(answer.yes for answer in one.answers))
    assert load(dump(scenario)) == scenario
    seen = next(seen for seen in (World(draw(seed)).play() for seed in range(40)) if _away(seen))
    assert judge(seen) == []
    name, at = _away(seen)[0]
    assert name in _unapproved_by(replace(seen, answers=()))
    yes = next(one for one in seen.answers if one.name == name and one.yes and one.given <= at)
    no = AnswerSeen(name, False, yes.asked, yes.given + 0.001, at - 10, yes.request)
    assert name not in _unapproved_by(replace(seen, answers=(yes,)))
    assert name in _unapproved_by(replace(seen, answers=(yes, no)))


def test_a_zone_that_opens_without_a_yes_is_a_breach() -> None:
    seen = next(seen for seen in (World(draw_zone_answers(seed)).play() for seed in range(40)) if _home(seen))
    assert judge(seen) == []
    name, at = _home(seen)[0]
    before = tuple(one for one in seen.answers if one.given < at - 5)
    assert name in _unapproved_by(replace(seen, answers=before))


def test_a_zone_that_stays_isolated_after_a_yes_to_its_way_back_is_a_breach() -> None:
    seeds = (World(draw_zone_answers(seed)).play() for seed in range(40))
    stays = [_without(seen, name, at) for seen in seeds for name, at in _home(seen)]
    assert any("lost" in {breach.promise for breach in judge(seen)} for seen in stays)


def _without(seen: Seen, name: str, at: float) -> Seen:
    """Give the run as if this zone's writes from then on had not been made."""
    routes = [
        replace(zone, writes=tuple(one for one in zone.writes if one.at < at)) if zone.name == name else zone
        for zone in seen.run.routes
    ]
    return replace(seen, run=replace(seen.run, routes=tuple(routes)))


def _home(seen: Seen) -> list[tuple[str, float]]:
    zones = [route for route in seen.run.routes if not route.returns]
    return [(zone.name, write.at) for zone in zones for write in zone.writes if not zone.away(write)]


def _away(seen: Seen) -> list[tuple[str, float]]:
    """Acts on the cluster, the zones or the workloads: each of these scenarios has routes beside them."""
    others = [one for one in seen.run.routes if not one.name.startswith("route")]
    return [(one.name, write.at) for one in others for write in one.writes if one.away(write)]


def _unapproved_by(seen: Seen) -> list[str]:
    return [breach.route for breach in judge(seen) if breach.promise == "unapproved"]
