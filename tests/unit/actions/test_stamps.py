"""Decision that an object follows, and the decisions that may overrule it."""

from __future__ import annotations

import pytest

from reactor.actions.annotations import Stamp, stamp_of, stamp_on
from tests.unit.actions.builders import set_weights, split

GROUP = "checkout/east/shop/TrafficSplit/checkout"


@pytest.mark.parametrize(
    ("stands", "asked", "newer"),
    [
        pytest.param((2, 1), (1, 1), True, id="a later generation"),
        pytest.param((1, 1), (2, 1), False, id="an earlier generation"),
        pytest.param((1, 1), (1, 1), False, id="the same"),
        pytest.param((1, 2), (1, 1), True, id="the same decision, published by the owner after"),
        pytest.param((3, 9), (4, 1), False, id="the bus was wiped: epochs start again, generations go on"),
    ],
)
def test_the_newer_decision_of_a_group_wins(stands: tuple[int, int], asked: tuple[int, int], newer: bool) -> None:
    assert Stamp(GROUP, *stands).overrules(Stamp(GROUP, *asked)) is newer


def test_another_group_says_nothing_about_ours() -> None:
    assert not Stamp("other", 9, 9).overrules(Stamp(GROUP, 1, 1))


def test_what_an_action_leaves_is_what_is_read_back() -> None:
    action = set_weights({"p": 1}, generation=12, epoch=34)
    notes = {"reactor/decision": action.id, "reactor/epoch": "34"}
    assert stamp_on(split([], annotations=notes)) == stamp_of(action) == Stamp(GROUP, 12, 34)


@pytest.mark.parametrize(
    "notes",
    [
        None,
        {},
        {"reactor/decision": "", "reactor/epoch": "1"},
        {"reactor/decision": "edited by hand", "reactor/epoch": "1"},
        {"reactor/decision": f"{GROUP}/x", "reactor/epoch": "1"},
        {"reactor/decision": f"{GROUP}/²", "reactor/epoch": "1"},
        {"reactor/decision": f"{GROUP}/1", "reactor/epoch": "-1"},
        {"reactor/decision": f"{GROUP}/{'9' * 200_000}", "reactor/epoch": "1"},
    ],
)
def test_a_stamp_that_is_none_of_ours_refuses_nothing(notes: dict[str, str] | None) -> None:
    assert stamp_on(split([], annotations=notes)) is None


def test_a_decision_without_an_epoch_is_of_the_first() -> None:
    assert stamp_on(split([], annotations={"reactor/decision": f"{GROUP}/3"})) == Stamp(GROUP, 3, 0)
