"""A finished isolation is checked again and again, by one action that is never done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bus.messages import Fact, Outcome, ZoneStep
from rules.core.group import Group
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.zone.builders import STEPS, ZONES, healthy, listed, paused, resumed, unhealthy, zone_rule

FIRST_LOOK = len(STEPS) + 1
"""Its generation."""


class Played:
    """A book, answered by hand."""

    def __init__(self, *, answered: int = len(STEPS), **keys: object) -> None:
        self.routing = Routing([zone_rule(**keys)])
        self.group_store = GroupStore(self.routing)
        self.asked: list[tuple[float, ZoneStep]] = []
        for when, fact in sorted([*listed(), *healthy(*ZONES, at=0), *unhealthy("a", at=100)], key=lambda one: one[0]):
            self.take(when, fact)
        self.until(110)
        for number in range(1, answered + 1):
            self.answer(110, number, "Done")

    @property
    def group(self) -> Group:
        (group,) = self.group_store.groups.values()
        return group

    def take(self, second: float, *facts: Fact) -> None:
        self._note(second, self.group_store.apply(facts, at(second)))

    def answer(self, second: float, number: int, status: str, reason: str | None = None) -> None:
        self.take(
            second,
            Outcome.model_validate({
                "action": f"zones/prod/a/{number}", "rule": "zones", "object": "prod/a", "status": status,
                "reason": reason, "detail": "4 of 4 nodes are fenced", "observed_at": at(second),
            }),
        )  # fmt: skip

    def until(self, second: float) -> None:
        while (alarm := self.group_store.next_alarm()) is not None and alarm <= at(second):
            self._note((alarm - at(0)).total_seconds(), self.group_store.fire_due(alarm))

    def restart(self) -> None:
        self.group_store = GroupStore(self.routing, [load_group(dump_group(self.group))])

    def _note(self, second: float, decisions: Sequence[Decision]) -> None:
        self.asked += [(second, action) for one in decisions for action in one.actions if isinstance(action, ZoneStep)]

    @property
    def looks(self) -> list[tuple[float, int]]:
        """Second and generation of each check of the finished isolation."""
        return [(when, one.generation) for when, one in self.asked if (one.step, one.status) == ("Verify", "Done")]


def test_a_step_that_gets_on_is_no_hold_and_is_asked_for_again_after_five_seconds() -> None:
    played = Played(answered=0)
    for second in (110, 115, 120):
        played.until(second)
        played.answer(second, 1, "Failed", "InProgress")
        assert played.group.held is None
    assert [(when, one.generation, one.step) for when, one in played.asked] == [
        (second, 1, "Fence") for second in (110, 115, 120)
    ]


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_finished_isolation_is_checked_every_minute_by_one_and_the_same_action(played: Played) -> None:
    for round_ in range(5):
        played.until(170 + 60 * round_)
        played.answer(170 + 60 * round_, FIRST_LOOK, "Failed", "Maintained")
        played.restart()
    assert played.looks == [(170 + 60 * round_, FIRST_LOOK) for round_ in range(5)]
    assert played.group.held is None
    assert played.group.state.isolation is not None
    assert played.group.state.isolation.trouble == "Maintained: 4 of 4 nodes are fenced"


def test_each_ask_has_a_number_of_its_own_or_the_bus_takes_it_for_a_repeat(played: Played) -> None:
    numbers = []
    for second, reason in ((170, "Maintained"), (230, "NotAsAsked"), (235, "InProgress"), (240, "Maintained")):
        played.until(second)
        (owed,) = played.group.outbox
        numbers.append(owed.tries + owed.rounds)
        played.answer(second, FIRST_LOOK, "Failed", reason)
    assert numbers == [1, 2, 3, 4]


def test_a_round_that_does_not_hold_is_told(played: Played) -> None:
    played.until(170)
    played.answer(170, FIRST_LOOK, "Failed", "NotAsAsked")
    assert played.group.held is not None
    assert (played.group.held.reason, played.group.held.detail[:10]) == ("ActionFailed", "NotAsAsked")


def test_after_nodes_have_joined_it_is_fenced_and_gone_over_at_once(played: Played) -> None:
    played.until(170)
    played.answer(170, FIRST_LOOK, "Failed", "Maintained")
    joined = listed(at=180, nodes={"a": (6, 0), "b": (5, 5), "c": (5, 5)})
    played.take(180, joined[0][1])
    played.answer(181, FIRST_LOOK + 1, "Done")
    assert [(when, one.step, one.because) for when, one in played.asked[-2:]] == [
        (180, "Fence", "NodesJoined"), (181, "Verify", "ZoneUnhealthy"),
    ]  # fmt: skip


def test_a_paused_rule_goes_over_nothing(played: Played) -> None:
    played.take(150, paused(at=150)[0][1])
    played.until(400)
    assert played.looks == []
    played.take(401, resumed(at=401)[0][1])
    assert played.looks == [(401, FIRST_LOOK)]


def test_an_executor_that_calls_it_done_is_not_asked_without_end(played: Played) -> None:
    played.until(170)
    played.answer(170, FIRST_LOOK, "Done")
    played.until(5000)
    assert played.looks == [(170, FIRST_LOOK)]


def test_a_rehearsed_isolation_is_not_gone_over() -> None:
    played = Played(mode="DryRun")
    played.until(5000)
    assert played.looks == []
