"""A group that a guard denies holds up no other group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bus.messages import AcquireRequest, Action, Fact
from rules.limits.acquire import DENIED
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from tests.examples import many
from tests.unit.rules.builders import rule_set, unhealthy
from tests.unit.rules.guards.world import World, done_at_once, down, home, never, shared, web, webs

FULL = {"maxConcurrent": 1, "maxUnhealthy": 0, "peers": "service/other/**"}
DISRUPTED = {"peers": "service/other/**", "disruption": {"unhealthyAt": "50%", "secondaryRatePerSecond": 0}}


def two(**guards: Any) -> list[Rule]:
    """The first of two rules has guards of its own."""
    return list(rule_set(web(0, guards=guards), web(1)).rules)


@pytest.mark.parametrize("own", [{"maxUnhealthy": 0, "peers": "service/other/**"}, FULL, DISRUPTED])
def test_a_group_that_is_denied_keeps_no_slot(own: dict[str, Any]) -> None:
    """The order in which its guards are asked does not matter."""
    bad = unhealthy("y", at=0)
    bad = (0.0, bad[1].model_copy(update={"target": "service/other/shop/y"}))
    for name in ("a", "z"):
        files = [shared(name=name, maxConcurrent=1)]
        world = World(two(**own), files).play(*home(2), bad, *down(0, at=10), *down(1, at=20), until=200)
        assert world.times == [(20, "w1")]


def test_a_group_that_waits_for_one_that_never_ends_keeps_no_slot_of_others() -> None:
    rules = list(rule_set(*(web(number) for number in range(3))).rules)
    guards = [shared(name="a", maxConcurrent=2), shared(name="b", rules=["w[01]"], maxConcurrent=1)]

    def answers(action: Action, now: float) -> Any:
        return (never if action.rule == "w0" else done_at_once)(action, now)

    world = World(rules, guards, answers=answers)
    world.play(*home(3), *down(0, at=10), *down(1, at=20), *down(2, at=30), until=500)
    assert world.times == [(10, "w0"), (30, "w2")]


def test_what_is_in_flight_keeps_its_slot_while_something_else_is_denied() -> None:
    """A route whose action has no outcome yet wants another one, and its peers are bad by now."""
    rules = two(maxUnhealthy=0, maxConcurrent=1, peers="service/other/**")
    world = World(rules, [shared(name="all", maxConcurrent=1)], answers=never)
    bad = (20.0, unhealthy("y", at=20)[1].model_copy(update={"target": "service/other/shop/y"}))
    world.play(*home(2), *down(0, at=10), bad, *down(1, at=30), until=500)
    assert world.times == [(10, "w0")]
    assert ("w1", "MaxConcurrent") in {(rule, why) for _, rule, why in world.held}


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=9), st.permutations("abc"),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=4, max_size=4),
)  # fmt: skip
@example([0.0, 1.0, 0.0], ["c", "a", "b"], [0.5, 0.0, 0.0, 0.0])
@many(150)
def test_no_two_groups_give_way_to_each_other_without_end(
    ways: Sequence[float], names: Sequence[str], begins: Sequence[float]
) -> None:
    """Each guard has one slot, and each rule needs two or three of them.

    Where a claim overtakes the one before it, a grant may be missed: then it is asked for again after a minute, which
    each of the four may have to do once.
    """
    who = (["w[012]"], ["w[0123]"], ["w[123]"])
    guards = [shared(rules, name=name, maxConcurrent=1) for name, rules in zip(names, who, strict=True)]
    delay = cycle(ways)

    def delays(fact: Fact, _now: float) -> Sequence[float]:
        return list(islice(delay, 1))

    failing = [event for number, begin in enumerate(begins) for event in down(number, at=10 + begin)]
    world = World(webs(4), guards, delays=delays).play(*home(4), *failing, until=400)
    assert {rule for _, rule in world.times} == {"w0", "w1", "w2", "w3"}
    latest = max(when for when, _ in world.times)
    assert latest < 20 + 4 * DENIED.total_seconds()
    assert [
        fact for _, fact in world.heard if isinstance(fact, AcquireRequest) and fact.observed_at > at(latest + 30)
    ] == []
