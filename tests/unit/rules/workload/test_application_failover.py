"""A workload leaves clusters that are well when its copy there is not: preconditions, tolerations, blocks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.builders import Event, outcome
from tests.unit.rules.workload.builders import (
    acts,
    cluster,
    clusters,
    copy,
    happens,
    holds,
    placement,
    workload,
    workload_rule,
)

NAMES = ("m1", "m2", "m3")


def rule(*, tolerate: float | None = 100, **keys: Any) -> dict[str, Any]:
    """One copy on three clusters, which may be bad for 100 s."""
    application = {"decisionConditions": {} if tolerate is None else {"tolerationSeconds": tolerate}} | keys
    return workload_rule(placement=placement(*NAMES), failover={"application": application})


def start() -> list[Event]:
    return [workload({"m1": 2}, replicas=2), *clusters("Healthy", *NAMES)]


MOVED = [(110.0, "Place", {"m2": 2}), (110.0, "Evict", "m1")]


def seconds(came: list[tuple[Any, ...]]) -> list[float]:
    return [second for second, verb, _ in came if verb == "Evict"]


def test_a_copy_that_stays_bad_moves_when_its_toleration_is_over() -> None:
    assert acts(rule(), *start(), copy("m1", "Unhealthy", at=10)) == MOVED
    assert {one.what.because for one in happens(rule(), *start(), copy("m1", "Unhealthy", at=10), until=200)} == {  # type: ignore[union-attr]
        "WorkloadUnhealthy", "TolerationElapsed",
    }  # fmt: skip


def test_the_default_toleration_is_300_seconds() -> None:
    assert seconds(acts(rule(tolerate=None), *start(), copy("m1", "Unhealthy", at=10))) == [310.0]


def test_a_toleration_of_zero_acts_at_once() -> None:
    assert seconds(acts(rule(tolerate=0), *start(), copy("m1", "Unhealthy", at=10))) == [10.0]


def test_a_copy_that_is_good_again_starts_again() -> None:
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=105), copy("m1", "Unhealthy", at=110)]
    assert seconds(acts(rule(), *start(), *events)) == [210.0]


def test_also_where_a_recovery_takes_longer() -> None:
    """recoverySeconds is for the way back alone: nothing has left yet."""
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=105), copy("m1", "Unhealthy", at=110)]
    assert seconds(acts(rule() | {"recoverySeconds": 60}, *start(), *events)) == [210.0]


def test_also_where_its_move_waited() -> None:
    """Its toleration was over, and there was nowhere to go. Found by a simulated fleet, workloads:71."""
    others = [
        cluster(name, status, at=at) for name in ("m2", "m3") for status, at in (("Unhealthy", 5), ("Healthy", 165))
    ]
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=150), copy("m1", "Unhealthy", at=160)]
    assert seconds(acts(rule() | {"recoverySeconds": 60}, *start(), *others, *events)) == [260.0]


def test_a_copy_that_leaves_stays_where_it_was_good_for_its_recovery_and_not_before() -> None:
    events = [
        copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=120), copy("m1", "Unhealthy", at=130),
        copy("m1", "Healthy", at=200),
    ]  # fmt: skip
    came = acts(rule() | {"recoverySeconds": 60}, *start(), *events)
    assert came == [*MOVED, (260.0, "CancelEviction", "m1"), (260.0, "Evict", "m2"), (260.0, "Purge", "m2")]


def test_unknown_lets_the_clock_wait_and_says_so() -> None:
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Unknown", at=60), copy("m1", "Unhealthy", at=500)]
    assert seconds(acts(rule(), *start(), *events)) == [550.0]
    assert holds(rule(), *start(), *events, until=520) == [(60.0, "TargetUnknown")]


def test_unknown_alone_never_moves_anything() -> None:
    assert acts(rule(), *start(), copy("m1", "Unknown", at=10)) == []


def test_unknown_moves_where_the_policy_lists_it_as_bad() -> None:
    listed = {"tolerationSeconds": 100, "healthyState": ["Unhealthy", "Unknown"]}
    events = [copy("m1", "Healthy", at=5), copy("m1", "Unknown", at=10)]
    assert seconds(acts(rule(decisionConditions=listed), *start(), *events)) == [110.0]
    changes = [*events, copy("m1", "Unhealthy", at=60)]
    assert seconds(acts(rule(decisionConditions=listed), *start(), *changes)) == [110.0]


def test_without_an_application_block_application_failover_is_off() -> None:
    given = workload_rule(placement=placement(*NAMES), failover={"cluster": {}})
    assert acts(given, *start(), copy("m1", "Unhealthy", at=10)) == []


# --- preconditions -------------------------------------------------------------------------------------------------


def test_a_copy_that_was_never_healthy_is_not_moved_where_that_is_asked_for() -> None:
    given = rule(preConditions={"healthyState": "Healthy"})
    assert acts(given, *start(), copy("m1", "Unhealthy", at=10)) == []
    assert holds(given, *start(), copy("m1", "Unhealthy", at=10)) == [(110.0, "PreconditionsNotMet")]
    assert acts(given, *start(), copy("m1", "Healthy", at=5), copy("m1", "Unhealthy", at=10)) == MOVED


def test_a_failure_counts_only_after_the_delay() -> None:
    given = rule(preConditions={"delaySeconds": 500})
    assert seconds(acts(given, *start(), copy("m1", "Unhealthy", at=10))) == [510.0]
    assert holds(given, *start(), copy("m1", "Unhealthy", at=10), until=200) == [(110.0, "PreconditionsNotMet")]
    assert seconds(acts(given, *start(), copy("m1", "Healthy", at=0), copy("m1", "Unhealthy", at=700))) == [800.0]


def test_both_preconditions_have_to_hold() -> None:
    given = rule(preConditions={"delaySeconds": 500, "healthyState": "Healthy"})
    assert acts(given, *start(), copy("m1", "Unhealthy", at=10)) == []
    events = [copy("m1", "Healthy", at=0), copy("m1", "Unhealthy", at=10)]
    assert seconds(acts(given, *start(), *events)) == [500.0]


# --- not back ------------------------------------------------------------------------------------------------------


def there_and_back(**keys: Any) -> list[tuple[Any, ...]]:
    """The copy fails on m1 at 10, is healthy on m2 at 120, and fails there at 200; m3 is no choice."""
    given = rule(**keys) | {"placement": placement("m1", "m2")}
    events = [
        copy("m1", "Unhealthy", at=10), copy("m2", "Healthy", at=120), copy("m1", "Healthy", at=125),
        copy("m2", "Unhealthy", at=200),
    ]  # fmt: skip
    return acts(given, *start(), *events)


@pytest.mark.parametrize(
    ("keys", "second"),
    [({}, 710.0), ({"blockPredecessorSeconds": 200}, 310.0), ({"blockPredecessorSeconds": None}, 300.0)],
)
def test_the_cluster_that_was_left_is_blocked_for_a_while(keys: dict[str, Any], second: float) -> None:
    came = there_and_back(**keys)
    assert came[:3] == [*MOVED, (120.0, "Purge", "m1")]
    assert came[3:] == [(second, "Place", {"m1": 2}), (second, "Evict", "m2")]


def test_a_block_of_zero_has_no_end() -> None:
    assert there_and_back(blockPredecessorSeconds=0) == [*MOVED, (120.0, "Purge", "m1")]


def test_a_blocked_cluster_is_a_reason_that_is_told() -> None:
    given = rule() | {"placement": placement("m1", "m2")}
    events = [copy("m1", "Unhealthy", at=10), copy("m2", "Healthy", at=120), copy("m2", "Unhealthy", at=200)]
    told = [one.what for one in happens(given, *start(), *events, until=400)]
    assert "m1 was left and is blocked" in told[-1].detail


# --- the old copy --------------------------------------------------------------------------------------------------


def test_a_copy_that_recovers_before_the_purge_stays() -> None:
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=150)]
    given_up = [(150.0, "Evict", "m2"), (150.0, "Purge", "m2")]  # m1 is Healthy, so what was placed in vain goes
    came = acts(rule(), *start(), *events)
    assert came == [*MOVED, (150.0, "CancelEviction", "m1"), *given_up]


def test_a_copy_that_is_only_unknown_is_not_kept_for_that() -> None:
    events = [copy("m1", "Unhealthy", at=10), copy("m1", "Unknown", at=150), copy("m2", "Healthy", at=160)]
    assert acts(rule(), *start(), *events) == [*MOVED, (160.0, "Purge", "m1")]


def test_a_new_copy_that_fails_too_is_timed_from_when_it_was_placed() -> None:
    events = [copy("m1", "Unhealthy", at=10), copy("m2", "Unhealthy", at=50), copy("m2", "Unhealthy", at=130)]
    came = acts(rule(), *start(), *events)
    assert came[2:] == [(210.0, "Place", {"m3": 2}), (210.0, "Evict", "m2")]


def test_both_failures_together_are_one_move() -> None:
    given = workload_rule(
        placement=placement(*NAMES, tolerate=100),
        failover={"cluster": {}, "application": {"decisionConditions": {"tolerationSeconds": 100}}},
    )
    events = [*clusters("Unhealthy", "m1", at=10), copy("m1", "Unhealthy", at=10)]
    assert acts(given, *start(), *events) == MOVED


def test_a_copy_that_is_good_again_does_not_come_back_to_a_cluster_that_is_bad_by_now() -> None:
    given_rule = workload_rule(
        placement=placement("m1", "m2", tolerate=20), recoverySeconds=0,
        failover={"cluster": {}, "application": {"decisionConditions": {"tolerationSeconds": 30}}},
    )  # fmt: skip
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), copy("m1", "Healthy", at=0)]
    events += [copy("m1", "Unhealthy", at=10), cluster("m1", "Unhealthy", at=50), copy("m1", "Healthy", at=60)]
    events += [copy("m1", "Unknown", at=65), cluster("m1", "Unknown", at=100)]
    left = acts(given_rule, *events, until=200)
    assert [verb for _, verb, _ in left] == ["Place", "Evict"], left
    back = acts(given_rule, *events, cluster("m1", "Healthy", at=150), until=200)
    assert back[2][:2] == (150.0, "CancelEviction")


def test_a_copy_whose_replacement_is_placed_goes_on_leaving_a_cluster_that_is_bad_by_now() -> None:
    """It is good again before it is known that the eviction is begun: the replacement does not go for it."""
    given_rule = workload_rule(
        placement=placement("m1", "m2", tolerate=20),
        failover={"cluster": {}, "application": {"decisionConditions": {"tolerationSeconds": 30}}},
    )  # fmt: skip
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), copy("m1", "Healthy", at=0)]
    events += [copy("m1", "Unhealthy", at=10), outcome("nginx/default/Deployment/nginx/1", "Done", at=41)]
    events += [cluster("m1", "Unhealthy", at=42), copy("m1", "Healthy", at=43), copy("m2", "Healthy", at=44)]
    said = acts(given_rule, *events, until=200, outcomes=False)
    assert said == [(40.0, "Place", {"m2": 2}), (41.0, "Evict", "m1")]
    back = cluster("m1", "Healthy", at=50)
    assert acts(given_rule, *events, back, until=200, outcomes=False) == said  # its eviction may have been carried out
    not_begun = outcome("nginx/default/Deployment/nginx/2", "Refused", reason="CalledOff", at=60)
    well = acts(given_rule, *events, back, not_begun, until=200, outcomes=False)
    assert well == [*said, (60.0, "Evict", "m2")]
    begun = outcome("nginx/default/Deployment/nginx/2", "Done", at=60)
    well = acts(given_rule, *events, back, begun, until=200, outcomes=False)
    assert well == [*said, (60.0, "Purge", "m1")]  # one of the two goes, and not both
