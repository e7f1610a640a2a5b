"""Hours of bad weather, and every promise kept. A seed that once broke one belongs into REGRESSIONS."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rules.group import dump, load
from rules.language.loader import LoadedRule
from tests.simulation.worlds import EVERY, World
from tests.unit.rules.builders import route, the_rule
from tests.unit.rules.histories import BACKENDS, HOME, SERVICES, Run, events
from tests.unit.rules.oracle import Heard, Patience, bad_for_long_enough, status, taken

HOURS = 2 * 3600
SEEDS = range(4)
REGRESSIONS: tuple[int, ...] = ()
PATIENCE = Patience(toleration=30, recovery=60)


def rule() -> LoadedRule:
    return the_rule(tolerationSeconds=PATIENCE.toleration, recoverySeconds=PATIENCE.recovery, backends=BACKENDS)


def played(history: list[Heard], **how: object) -> Run:
    return Run(rule(), **how).play([route(HOME), *events(history)], HOURS + 600)  # type: ignore[arg-type]


def recent(history: list[Heard], second: int) -> list[Heard]:
    """The last half hour: enough for windows of a minute, and quick."""
    return [
        Heard(word.service, word.status, word.seen - second + 1800, word.heard - second + 1800, stale=word.stale)
        for word in history
        if second - 1800 <= word.seen and word.heard <= second
    ]


@pytest.fixture(scope="module", params=[*SEEDS, *REGRESSIONS])
def world(request: pytest.FixtureRequest) -> tuple[list[Heard], Run]:
    history = World(request.param, HOURS).history()
    return history, played(history)


def test_there_is_something_to_do(world: tuple[list[Heard], Run]) -> None:
    assert len(world[1].moves) >= 2


def test_nobody_loses_its_traffic_early(world: tuple[list[Heard], Run]) -> None:
    history, run = world
    weights = HOME
    for now, asked in run.moves:
        for service in SERVICES:
            if weights[service] and not asked[service] and (service == "a" or not asked["a"]):
                assert bad_for_long_enough(recent(history, int(now)), service, PATIENCE, 1800), (now, service)
        weights = asked


def test_a_primary_that_stays_bad_is_left_in_time(world: tuple[list[Heard], Run]) -> None:
    history, run = world
    for second in range(1800, HOURS, 300):
        words = {service: taken(history, service, second) for service in SERVICES}
        since = range(second - PATIENCE.toleration - PATIENCE.recovery - EVERY, second + 1)
        bad = all(status(words["a"], moment) == "Unhealthy" for moment in since)
        ready = any(all(status(words[other], moment) == "Healthy" for moment in since) for other in ("b", "c"))
        if bad and ready:
            weights = next((asked for now, asked in reversed(run.moves) if now <= second), HOME)
            assert weights["a"] == 0, second


def test_somebody_always_has_traffic(world: tuple[list[Heard], Run]) -> None:
    assert all(any(asked.values()) for _, asked in world[1].moves)


def test_nothing_is_asked_twice(world: tuple[list[Heard], Run]) -> None:
    _, run = world
    actions = [action.id for _, action in run.actions]
    assert len(actions) == len(set(actions)) == len(run.moves)


def test_a_world_in_which_the_reactor_crashes_at_every_step_is_the_same(world: tuple[list[Heard], Run]) -> None:
    history, run = world
    assert played(history, between=lambda group: load(dump(group))).moves == run.moves


def test_there_are_no_more_moves_than_outages(world: tuple[list[Heard], Run]) -> None:
    history, run = world
    words = {service: [word.status for word in taken(history, service, HOURS)] for service in SERVICES}
    turns = sum(one != other for said in words.values() for one, other in pairwise(said))
    assert len(run.moves) <= turns
