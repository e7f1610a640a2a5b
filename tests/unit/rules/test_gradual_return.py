"""The way back to the primary, step by step."""

from __future__ import annotations

from typing import Any

from bus.messages import SetWeights
from rules.engine.group_codec import dump_group, load_group
from rules.rehearsal.simulation import at
from rules.rulefile.model import STEPS_MAX
from tests.unit.rules.builders import (
    OBJECT,
    failover,
    healthy,
    moves,
    outcome,
    route,
    said,
    step,
    the_rule,
    unhealthy,
    unknown,
)

STEPS = [{"percent": 10, "pauseSeconds": 60}, {"percent": 50, "pauseSeconds": 120}]
HOME, AWAY = {"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 1}
FAILED = (route(HOME), healthy("b", at=0), healthy("c", at=0), healthy("a", at=0), unhealthy("a", at=5))
TEN, FIFTY = {"a": 10, "b": 45, "c": 45}, {"a": 50, "b": 25, "c": 25}


def gradual(**keys: Any) -> dict[str, Any]:
    return failover(steps=STEPS, recoverySeconds=10, **keys)


def test_the_primary_gets_its_share_step_by_step() -> None:
    assert moves(gradual(), *FAILED, healthy("a", at=20)) == [
        (5, AWAY), (30, TEN), (90, FIFTY), (210, HOME),
    ]  # fmt: skip


def test_each_step_says_that_the_primary_is_returning() -> None:
    things = [one.what for one in said(gradual(), *FAILED, healthy("a", at=20)) if isinstance(one.what, SetWeights)]
    assert [thing.because for thing in things] == ["PrimaryUnhealthy", "Returning", "Returning", "PrimaryHealthy"]
    assert things[1].detail == "step 1 of 2: 10 %"


def test_weights_of_a_step_sum_to_a_hundred_whatever_the_shares() -> None:
    stands = (route({"a": 7, "b": 2, "c": 1}), *FAILED[1:])
    for _, weights in moves(gradual(distribution="Proportional"), *stands, healthy("a", at=20))[2:-1]:
        assert sum(weights.values()) == 100


def test_a_primary_that_fails_on_the_way_loses_everything_at_once() -> None:
    again = [healthy("a", at=20), unhealthy("a", at=100)]
    assert moves(gradual(), *FAILED, *again) == [(5, AWAY), (30, TEN), (90, FIFTY), (100, AWAY)]


def test_after_a_failure_on_the_way_the_return_begins_with_the_first_step() -> None:
    again = [healthy("a", at=20), unhealthy("a", at=100), healthy("a", at=200)]
    once = {"backoff": {"factor": 1}}
    assert moves(gradual(failback=once), *FAILED, *again)[4:] == [(210, TEN), (270, FIFTY), (390, HOME)]


def test_a_backend_that_fails_on_the_way_waits_longer() -> None:
    again = [healthy("a", at=20), unhealthy("a", at=100), healthy("a", at=200)]
    assert moves(gradual(), *FAILED, *again)[4:] == [(220, TEN), (280, FIFTY), (400, HOME)]


def test_a_primary_that_is_not_healthy_just_then_gets_no_more() -> None:
    # The dip is tolerated, so it keeps its share; the step that was due at 120 waits until it is healthy again.
    dip = [healthy("a", at=50), unhealthy("a", at=115), healthy("a", at=130)]
    assert moves(gradual(tolerationSeconds=30), *FAILED, *dip) == [
        (35, AWAY), (60, TEN), (130, FIFTY), (250, HOME),
    ]  # fmt: skip


def test_the_next_step_waits_while_the_primary_is_unknown() -> None:
    gap = [healthy("a", at=20), unknown("a", at=80), healthy("a", at=150)]
    assert moves(gradual(), *FAILED, *gap) == [(5, AWAY), (30, TEN), (150, FIFTY), (270, HOME)]


def test_secondaries_that_change_on_the_way_share_the_rest_and_the_pause_restarts() -> None:
    change = [healthy("a", at=20), unhealthy("b", at=50)]
    assert moves(gradual(), *FAILED, *change) == [
        (5, AWAY), (30, TEN), (50, {"a": 10, "b": 0, "c": 90}), (110, {"a": 50, "b": 0, "c": 50}), (230, HOME),
    ]  # fmt: skip


def test_with_no_secondary_left_the_primary_takes_everything() -> None:
    alone = [healthy("a", at=20), unhealthy("b", at=50), unhealthy("c", at=50)]
    assert moves(gradual(), *FAILED, *alone) == [(5, AWAY), (30, TEN), (50, HOME)]


def test_a_step_is_kept_for_its_pause_from_when_it_was_carried_out() -> None:
    late = [
        healthy("a", at=20), outcome(f"web/{OBJECT}/1", "Done", at=6), outcome(f"web/{OBJECT}/2", "Done", at=44),
    ]  # fmt: skip
    assert moves(gradual(), *FAILED, *late, until=150, outcomes=False) == [(5, AWAY), (30, TEN), (104, FIFTY)]


def test_a_step_that_is_not_carried_out_is_not_skipped() -> None:
    late = [healthy("a", at=20), outcome(f"web/{OBJECT}/1", "Done", at=6)]
    assert moves(gradual(), *FAILED, *late, until=900, outcomes=False) == [(5, AWAY), (30, TEN)]


def test_a_restart_in_the_middle_of_a_return_forgets_no_step() -> None:
    rule = the_rule(steps=STEPS, recoverySeconds=10)
    first = step(rule, None, 5, *FAILED)
    group = step(rule, first.group, 6, outcome(first.actions[0].id, "Done", at=6)).group
    tenth = step(rule, step(rule, group, 20, healthy("a", at=20)).group, 30)
    group = step(rule, tenth.group, 31, outcome(tenth.actions[0].id, "Done", at=31)).group
    again = load_group(dump_group(group))
    assert again == group
    assert again.next_deadline == at(91)
    fifty = step(rule, again, 91)
    assert [getattr(action, "weights", None) for action in fifty.actions] == [FIFTY]


def test_without_steps_the_primary_takes_everything_at_once() -> None:
    assert moves(failover(), *FAILED, healthy("a", at=20)) == [(5, AWAY), (20, HOME)]


def test_a_return_by_steps_happens_in_a_dry_run_too() -> None:
    assert moves(gradual(mode="DryRun"), *FAILED, healthy("a", at=20)) == [
        (5, AWAY), (30, TEN), (90, FIFTY), (210, HOME),
    ]  # fmt: skip


def test_as_many_steps_as_a_rule_may_have_are_rehearsed_without_a_pause() -> None:
    steps = [{"percent": percent, "pauseSeconds": 0} for percent in range(1, STEPS_MAX + 1)]
    rehearsed = failover(mode="DryRun", steps=steps)
    came = moves(rehearsed, route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=10),
                 healthy("a", at=20))  # fmt: skip
    assert [weights["a"] for _, weights in came] == [0, *range(1, STEPS_MAX + 1), 1]
