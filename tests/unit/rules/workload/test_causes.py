"""Causes that move a workload, facts that are no cause, and the text about them."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Hold
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set
from tests.unit.rules.workload.builders import (
    acts,
    cluster,
    clusters,
    copy,
    happens,
    holds,
    member,
    placement,
    workload,
    workload_rule,
)

NAMES = ("m1", "m2", "m3")
BROWNOUT = {
    "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/m1", "signals": ["brownout"],
    "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
}  # fmt: skip
FOR_EVER = {"clusterTolerations": [{"key": "reactor/brownout", "operator": "Exists", "effect": "NoExecute"}]}


def rule(**keys: Any) -> dict[str, Any]:
    return workload_rule(**{"failover": {"cluster": {}}, "placement": placement(*NAMES, tolerate=100)} | keys)


def start() -> list[Event]:
    return [workload({"m1": 2}), *clusters("Healthy", *NAMES), *(member(name) for name in NAMES)]


def dim(status: str, *, at: float, name: str = "m1") -> Event:
    return cluster(name, status, at=at, signal="brownout")


def because(rules: Any, *events: Event, until: float = 3000) -> list[str]:
    return [one.what.because for one in happens(rules, *events, until=until) if not isinstance(one.what, Hold)]


def reloaded(given_rule: Any, then: Any, events: list[Event], at: float, later: list[Event], until: float) -> list[Any]:
    """Play with one rule, and from a moment on with another one: as a reload does it."""
    group_store = GroupStore(Routing.of(rule_set(given_rule)))
    player = Simulator(group_store, outcomes=True)
    for second in sorted({when for when, _ in events}):
        list(player.until(at_(second)))
        list(player.take([fact for when, fact in events if when == second], at_(second)))
    list(player.until(at_(at)))
    again_rules = rule_set(*then) if isinstance(then, list) else rule_set(then)
    group_store = GroupStore(
        Routing.of(again_rules), [load_group(dump_group(group)) for group in group_store.groups.values()]
    )
    group_store.reconsider(at_(at))
    again = Simulator(group_store, outcomes=True)
    again._said = player._said
    out = list(again.until(at_(at)))
    for when, fact in later:
        out += list(again.until(at_(when)))
        out += list(again.take([fact], at_(when)))
    return [*out, *again.until(at_(until))]


# --- taints are no health ------------------------------------------------------------------------------------------


def test_a_brownout_that_is_tolerated_without_end_evicts_nothing() -> None:
    tolerant = workload_rule(failover={"cluster": {}}, placement=placement(*NAMES) | FOR_EVER)
    came = acts([tolerant, BROWNOUT], *start(), dim("Unhealthy", at=10))
    assert [verb for _, verb, _ in came] == ["SetTaints"]


def test_a_signal_that_the_rule_lists_counts_as_health_as_well() -> None:
    listed = workload_rule(
        failover={"cluster": {}}, placement=placement(*NAMES) | FOR_EVER, signals=["health", "brownout"]
    )
    came = acts([listed, BROWNOUT], *start(), dim("Unhealthy", at=10))
    assert [verb for _, verb, _ in came] == ["SetTaints", "Place", "Evict"]


def test_a_brownout_of_a_cluster_that_no_taint_rule_means_is_health() -> None:
    given_rule = workload_rule(failover={"cluster": {}}, placement=placement(*NAMES) | FOR_EVER)
    events = [workload({"m2": 2}), *clusters("Healthy", *NAMES), dim("Unhealthy", at=10, name="m2")]
    assert [verb for _, verb, _ in acts([given_rule, BROWNOUT], *events)] == ["Place", "Evict"]


def test_what_was_stored_of_such_a_signal_is_forgotten() -> None:
    """It must not go stale there and be mistaken for an unreachable cluster."""
    alone = rule()
    first = [*start(), dim("Healthy", at=1)]
    said = reloaded(alone, [alone, BROWNOUT], first, 5, [cluster("m1", "Healthy", at=900)], 1000)
    assert said == []


def test_an_eviction_for_a_taint_says_so_whatever_else_is_bad() -> None:
    borne = {"key": "reactor/brownout", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
    short = rule(placement=placement(*NAMES) | {"clusterTolerations": [borne]})
    assert because([short, BROWNOUT], *start(), dim("Unhealthy", at=10))[1:] == ["ClusterTainted", "TolerationElapsed"]
    both = [*start(), dim("Unhealthy", at=10), cluster("m1", "Unhealthy", at=20)]
    assert because([short, BROWNOUT], *both)[1:3] == ["ClusterTainted", "TolerationElapsed"]
    assert because(rule(), *start(), cluster("m1", "Unhealthy", at=10))[0] == "ClusterUnhealthy"


# --- copies without observations -----------------------------------------------------------------------------------


def test_an_alert_that_never_fired_is_absent_and_not_unknown() -> None:
    assert holds(BROWNOUT, *clusters("Healthy", *NAMES)) == []
    listed = rule(signals=["brownout"])
    assert holds(listed, *start()) == []
    fired = dim("Unhealthy", at=10)
    assert acts(listed, *start(), fired)[0] == (110.0, "Place", {"m2": 2})


# --- rules that change ---------------------------------------------------------------------------------------------


def test_a_shorter_toleration_acts_at_the_reload() -> None:
    before, after = (rule(placement=placement(*NAMES, tolerate=seconds)) for seconds in (1000, 50))
    came = reloaded(before, after, [*start(), cluster("m1", "Unhealthy", at=10)], 200, [], 300)
    assert [one.at for one in came][:2] == [200.0, 200.0]


def test_a_shorter_window_of_a_taint_acts_at_the_reload() -> None:
    before, after = (BROWNOUT | {"tolerationSeconds": seconds} for seconds in (1000, 50))
    came = reloaded(before, after, [dim("Unhealthy", at=10)], 200, [], 300)
    assert [one.at for one in came] == [200.0]


def test_never_stops_a_purge_that_waits_for_its_grace_period() -> None:
    gone = rule(failover={"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 300, "onGraceExpired": "Purge"}})
    events = [*start(), cluster("m1", "Unhealthy", at=10)]
    assert [verb for _, verb, _ in acts(gone, *events)] == ["Place", "Evict", "Purge"]
    assert reloaded(gone, rule(failover={"cluster": {"purgeMode": "Never"}}), events, 200, [], 3000) == []


def test_a_cluster_block_that_is_taken_away_is_said_to_be_a_change_of_the_rule() -> None:
    off = workload_rule(placement=placement(*NAMES, tolerate=100), failover={"application": {}})
    came = reloaded(rule(), off, [*start(), cluster("m1", "Unhealthy", at=10)], 200, [], 300)
    assert (type(came[0].what).__name__, came[0].what.because) == ("CancelEviction", "RuleChanged")


def test_another_primary_is_not_taken_for_another_writers_write() -> None:
    def named(primary: str, at: float) -> Event:
        weights = {"checkout": 1, "checkout-west": 0}
        return route(weights, at=at, annotations={"failover.linkerd.io/primary-service": primary})

    events = [named("checkout", 0), healthy("checkout", at=0), healthy("checkout-west", at=0)]
    assert because(failover(), *events, named("checkout-west", 50), until=100) == ["PrimaryChanged"]


# --- numbers and clusters that are no more -------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -1, -300])
def test_a_toleration_of_zero_or_less_is_none(seconds: float) -> None:
    came = acts(rule(placement=placement(*NAMES, tolerate=seconds)), *start(), cluster("m1", "Unhealthy", at=10))
    assert came[0] == (10.0, "Place", {"m2": 2})


def test_a_cluster_that_is_deleted_with_a_copy_on_it_is_left_after_its_toleration() -> None:
    deleted = member("m1", at=50, exists=False)
    came = happens(rule(), *start(), deleted)
    assert [(one.at, type(one.what).__name__, getattr(one.what, "because", "")) for one in came][:2] == [
        (150.0, "Place", "ClusterTainted"), (150.0, "Evict", "TolerationElapsed"),
    ]  # fmt: skip
    back = member("m1", at=100)
    assert acts(rule(), *start(), deleted, back) == []
    assert "deleted" in came[0].what.detail


def test_a_deleted_cluster_without_copies_is_nobodys_business() -> None:
    assert happens(rule(), *start(), member("m3", at=50, exists=False)) == []


def test_a_standing_copy_without_observations_is_not_taken_for_healthy() -> None:
    events = [workload({"m1": 2, "m3": 2}), *start()[1:], member("m4"), cluster("m4", "Healthy", at=0)]
    given_rule = rule(
        placement=placement(*NAMES, "m4", tolerate=100), failover={"cluster": {"gracePeriodSeconds": 300}}
    )
    told = [copy("m2", "Healthy", at=130)]
    came = acts(given_rule, *events, cluster("m1", "Unhealthy", at=10), *told)
    assert came[2:] == [(410.0, "Purge", "m1")]


@pytest.mark.parametrize(("heard_at", "tolerated"), [(60, None), (90, None), (90, 3000)])
def test_an_observation_of_a_copy_before_its_cluster_failed_lets_no_other_copy_go(
    heard_at: float, tolerated: int | None
) -> None:
    """m1 is left for a brownout and serves. What m2 said before 80 is no evidence that it does; nor is what it said
    afterwards, where it has to leave in time."""
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key, seconds in (("reactor/brownout", 20), ("", tolerated))
    ]
    given_rule = rule(
        placement=placement(*NAMES) | {"clusterTolerations": tolerations},
        failover={"cluster": {"gracePeriodSeconds": 100}},
    )
    events = [workload({"m1": 2, "m2": 2}), *start()[1:], copy("m1", "Healthy", at=0), dim("Unhealthy", at=10)]
    events += [copy("m2", "Healthy", at=heard_at), cluster("m2", "Unhealthy", at=80)]
    came = happens([given_rule, BROWNOUT], *sorted(events, key=lambda event: event[0]), until=400)
    assert [type(one.what).__name__ for one in came][:3] == ["SetTaints", "Place", "Evict"]
    assert [(one.at, getattr(one.what, "held", "purged")) for one in came][3:] == [
        (130.0, "purged" if heard_at > 80 and tolerated is None else "GraceExpired")
    ]
