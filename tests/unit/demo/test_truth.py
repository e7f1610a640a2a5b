"""The figures of the story come from the API server's log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor.demo import scene
from reactor.demo.ground_truth import RouteWrite, StoryVerdict, judge, shifts
from reactor.demo.kube import Emulator
from reactor.demo.story import Figures
from reactor.runtime.clock import Clock

AWAY = ({"a": 1, "b": 0}, {"a": 0, "b": 1})
BACK = (AWAY[1], AWAY[0])
DUE = (10.0, 30.0)


def shift(at: float, moved: tuple[dict[str, int], dict[str, int]]) -> RouteWrite:
    return RouteWrite(at, "alert-reactor", *moved)


@pytest.mark.parametrize(
    ("writes", "verdict"),
    [
        ([shift(10, AWAY), shift(31, BACK)], StoryVerdict(writes=2, doubled=0, early=0)),
        ([shift(9.9, AWAY), shift(31, BACK)], StoryVerdict(writes=2, doubled=0, early=1)),
        ([shift(11, AWAY), shift(12, (AWAY[1], AWAY[1])), shift(31, BACK)], StoryVerdict(writes=3, doubled=1, early=0)),
        ([shift(11, AWAY), shift(31, BACK), shift(40, AWAY)], StoryVerdict(writes=3, doubled=1, early=0)),
        ([], StoryVerdict(writes=0, doubled=0, early=0)),
    ],
)
def test_writes_are_judged_by_when_they_were_due(writes: Sequence[RouteWrite], verdict: StoryVerdict) -> None:
    assert judge(writes, DUE) == verdict


async def test_only_what_changed_the_route_counts_and_not_the_worlds_own_doing() -> None:
    emulator = Emulator(clock=Clock().now)
    scene.furnish(emulator)
    east = emulator.clusters["east"]
    east.patch("trafficsplits", "checkout", {"metadata": {"labels": {"a": "b"}}}, "shop")
    move = [{"op": "replace", "path": "/spec/backends/0/weight", "value": 0}]
    east.patch("trafficsplits", "checkout", move, "shop", manager="alert-reactor")
    east.patch("trafficsplits", "checkout", move, "shop", manager="alert-reactor")  # a no-op
    east.patch("trafficsplits", "checkout", [{**move[0], "value": 1}], "shop", manager="kubectl-edit")
    found = shifts(emulator, "east")
    assert [(one.manager, one.before["checkout"], one.after["checkout"]) for one in found] == [
        ("alert-reactor", 1, 0),
        ("kubectl-edit", 0, 1),
    ]
    assert [one.by_reactor for one in found] == [True, False]


def figures(verdict: StoryVerdict, *, outside: bool = False) -> Figures:
    return Figures(100.0, 104.0, 120.0, 110.5, verdict, 1000, 300, failed_outside=outside)


def test_the_last_line_says_it_all() -> None:
    assert str(figures(StoryVerdict(2, 0, 0))) == (
        "first action 10.5 s after the services were up, 6.5 s after the fault\n"
        "requests: 1000, failed 300 (only between the fault and the shift)\nwrites to the route: 2; 0 doubled, 0 early"
    )


@pytest.mark.parametrize("verdict", [StoryVerdict(3, 1, 0), StoryVerdict(2, 0, 1), StoryVerdict(1, 0, 0)])
def test_a_story_with_a_write_that_was_not_due_is_not_as_told(verdict: StoryVerdict) -> None:
    assert "two writes to the route were due" in figures(verdict).complaint()


def test_a_story_in_which_other_requests_failed_is_not_as_told() -> None:
    assert figures(StoryVerdict(2, 0, 0)).complaint() == ""
    assert "requests failed" in figures(StoryVerdict(2, 0, 0), outside=True).complaint()
