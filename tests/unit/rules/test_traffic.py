"""Traffic when backends fail."""

from __future__ import annotations

import json

import pytest

from bus.messages import SetWeights
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import (
    OBJECT,
    backends,
    failover,
    healthy,
    holds,
    moves,
    outcome,
    route,
    rule_set,
    said,
    unhealthy,
    unknown,
)

A, B, C = ({"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1})
BOTH = {"a": 0, "b": 1, "c": 1}
FIRST = f"web/{OBJECT}/1"
WELL = (route(A), healthy("a", at=0), healthy("b", at=0), healthy("c", at=0))


def test_ready_secondaries_share_equally() -> None:
    assert moves(failover(), *WELL, unhealthy("a", at=5)) == [(5, BOTH)]


def test_a_secondary_that_fails_is_left_and_taken_again() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), healthy("b", at=20)]
    assert moves(failover(), *WELL, *story) == [(5, BOTH), (10, C), (20, BOTH)]


def test_a_serving_secondary_is_left_only_after_its_toleration() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=30)]
    assert moves(failover(tolerationSeconds=10), *WELL, *story) == [(15, BOTH), (40, C)]


def test_a_secondary_that_dips_just_then_is_not_chosen() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=14)]
    assert moves(failover(tolerationSeconds=10), *WELL, *story, until=15) == [(15, C)]


def test_a_secondary_that_dips_while_its_weight_is_on_its_way_is_left_only_after_its_toleration() -> None:
    """The write may be done already. Found by chaos: two seeds of an API server that flaps."""
    story = [unhealthy("a", at=5), unhealthy("b", at=15.1)]
    done = [outcome(FIRST, "Done", at=15.3), route(BOTH, at=15.4)]
    rule = failover(tolerationSeconds=10)
    assert moves(rule, *WELL, *story, *done, until=30, outcomes=False) == [(15, BOTH), (25.1, C)]


def test_also_where_the_answer_to_the_write_comes_seconds_late() -> None:
    """Found by chaos: an API server that takes 5 s for each answer, seed 703."""
    story = [unhealthy("a", at=5), unhealthy("b", at=19)]
    done = [outcome(FIRST, "Done", at=20), route(BOTH, at=20.1)]
    rule = failover(tolerationSeconds=10)
    assert moves(rule, *WELL, *story, *done, until=40, outcomes=False) == [(15, BOTH), (29, C)]


def test_a_secondary_that_dips_before_its_weight_is_written_is_not_chosen_when_the_write_takes_long() -> None:
    """The executor asks before it writes what was decided more than a second ago."""
    group_store = GroupStore(Routing.of(rule_set(failover(tolerationSeconds=10))))
    for second, fact in (*WELL, unhealthy("a", at=5)):
        group_store.apply([fact], at_(second))
    group_store.fire_due(at_(15))
    group_store.apply([unhealthy("b", at=16)[1]], at_(16))
    answer = group_store.confirm("web", OBJECT, FIRST, at_(16.5), at_(16.5))
    assert (answer.wanted, answer.detail) == (False, "the rule no longer wants it")
    story = [unhealthy("a", at=5), unhealthy("b", at=16), outcome(FIRST, "Refused", at=16.5, reason="CalledOff")]
    assert moves(failover(tolerationSeconds=10), *WELL, *story, until=20, outcomes=False) == [(15, BOTH), (16.5, C)]


def test_a_secondary_that_is_not_known_is_not_chosen() -> None:
    assert moves(failover(), *WELL, unknown("b", at=4), unhealthy("a", at=5)) == [(5, C)]


def test_a_secondary_without_an_observation_is_not_chosen() -> None:
    assert moves(failover(), route(A), healthy("a", at=0), healthy("c", at=0), unhealthy("a", at=5)) == [(5, C)]


def test_a_failed_secondary_comes_back_only_after_its_recovery_time() -> None:
    story = [unhealthy("b", at=1), unhealthy("a", at=5), healthy("b", at=20)]
    assert moves(failover(recoverySeconds=30), *WELL, *story) == [(5, C), (50, BOTH)]


def test_when_no_other_is_left_a_secondary_that_is_healthy_again_is_used_at_once() -> None:
    story = [unhealthy("b", at=1), unhealthy("c", at=1), unhealthy("a", at=5), healthy("b", at=20)]
    assert moves(failover(recoverySeconds=30), *WELL, *story, until=49) == [(20, B)]


def test_weights_stay_when_no_secondary_is_healthy() -> None:
    story = [unhealthy("b", at=1), unhealthy("c", at=1), unhealthy("a", at=5)]
    assert moves(failover(), *WELL, *story) == []
    assert holds(failover(), *WELL, *story) == [(5, "NoHealthySecondary")]


def test_weights_stay_when_the_last_secondary_fails_too() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), unhealthy("c", at=20)]
    assert moves(failover(), *WELL, *story) == [(5, BOTH), (10, C)]


def test_on_all_down_primary_gives_everything_back_to_the_primary() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), unhealthy("c", at=20)]
    assert moves(failover(onAllDown="Primary"), *WELL, *story) == [(5, BOTH), (10, C), (20, A)]


def test_on_all_down_spread_uses_everyone() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), unhealthy("c", at=20)]
    assert moves(failover(onAllDown="Spread"), *WELL, *story)[-1] == (20, {"a": 1, "b": 1, "c": 1})


def test_on_all_down_zero_writes_what_linkerd_failover_writes() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), unhealthy("c", at=20)]
    assert moves(failover(onAllDown="Zero"), *WELL, *story)[-1] == (20, {"a": 0, "b": 0, "c": 0})


@pytest.mark.parametrize("wanted", ["Primary", "Spread", "Zero"])
def test_not_knowing_a_secondary_is_not_the_same_as_all_down(wanted: str) -> None:
    story = [unknown("b", at=1), unknown("c", at=1), unhealthy("a", at=5)]
    assert moves(failover(onAllDown=wanted), *WELL, *story) == []


def test_from_all_down_the_first_that_is_good_again_gets_the_traffic() -> None:
    down = [unhealthy(service, at=5) for service in "abc"]
    assert moves(failover(onAllDown="Zero"), *WELL, *down, healthy("c", at=20))[-1] == (20, C)
    assert moves(failover(onAllDown="Spread"), *WELL, *down, healthy("a", at=20))[-1] == (20, A)


# --- tiers and shares --------------------------------------------------------------------------------------------


TIERS = failover(backends=backends("a", {"service": "b", "tier": 1}, {"service": "c", "tier": 2}))


def test_a_higher_tier_is_used_only_when_no_lower_one_is_ready() -> None:
    story = [unhealthy("a", at=5), unhealthy("b", at=10), healthy("b", at=20), healthy("a", at=30)]
    assert moves(TIERS, *WELL, *story) == [(5, B), (10, C), (20, B), (30, A)]


def test_backends_of_other_clusters_answer_for_themselves() -> None:
    rule = failover(backends=backends("a", {"service": "b", "target": "service/west/shop/b"}))
    stands = (route({"a": 1, "b": 0}), healthy("a", at=0), healthy("service/west/shop/b", at=0))
    assert moves(rule, *stands, unhealthy("b", at=1), unhealthy("a", at=5)) == [(5, {"a": 0, "b": 1})]


def test_proportional_shares_follow_the_weights_of_the_rule() -> None:
    shared = [{"service": "a", "weight": 100}, {"service": "b", "weight": 70}, {"service": "c", "weight": 30}]
    rule = failover(distribution="Proportional", backends=shared)
    story = [unhealthy("a", at=5), unhealthy("b", at=10), healthy("b", at=20), healthy("a", at=30)]
    stands = (route({"a": 100, "b": 0, "c": 0}), *WELL[1:])
    assert moves(rule, *stands, *story) == [
        (5, {"a": 0, "b": 70, "c": 30}), (10, {"a": 0, "b": 0, "c": 30}), (20, {"a": 0, "b": 70, "c": 30}),
        (30, {"a": 100, "b": 0, "c": 0}),
    ]  # fmt: skip


def test_proportional_shares_are_remembered_from_before_the_failover() -> None:
    rule = failover(distribution="Proportional")
    stands = (route({"a": 0, "b": 70, "c": 30}), unhealthy("a", at=0), healthy("b", at=0), healthy("c", at=0))
    story = [unhealthy("b", at=10), healthy("b", at=20)]
    assert moves(rule, *stands, *story) == [(10, {"a": 0, "b": 0, "c": 30}), (20, {"a": 0, "b": 70, "c": 30})]


def test_proportional_shares_are_read_from_the_annotation_after_everything_was_forgotten() -> None:
    rule = failover(distribution="Proportional")
    remembered = {"reactor/healthy-weights": json.dumps({"a": 90, "b": 7, "c": 3})}
    stands = (route({"a": 0, "b": 0, "c": 3}, annotations=remembered), healthy("c", at=0))
    story = [unhealthy("a", at=0), unhealthy("b", at=0), healthy("b", at=10), healthy("a", at=20)]
    assert moves(rule, *stands, *story) == [(10, {"a": 0, "b": 7, "c": 3}), (20, {"a": 90, "b": 0, "c": 0})]


@pytest.mark.parametrize("text", ["", "no json", "[1, 2]", '{"a": -1}', '{"a": "many"}', '{"a": true}', "null"])
def test_an_annotation_that_makes_no_sense_is_not_used(text: str) -> None:
    rule = failover(distribution="Proportional")
    stands = (route({"a": 5, "b": 7, "c": 3}, annotations={"reactor/healthy-weights": text}), *WELL[1:])
    assert moves(rule, *stands, unhealthy("a", at=5))[-1] == (5, {"a": 0, "b": 7, "c": 3})


def test_an_action_carries_the_healthy_weights_so_that_they_can_be_kept() -> None:
    stands = (route({"a": 90, "b": 0, "c": 0}), *WELL[1:])
    moved = [one.what for one in said(failover(), *stands, unhealthy("a", at=5)) if isinstance(one.what, SetWeights)]
    assert moved[-1].remember == {"a": 90, "b": 0, "c": 0}


# --- the route's current weights ----------------------------------------------------------------------------------


def test_a_hand_edit_is_put_right() -> None:
    edited = route({"a": 1, "b": 1, "c": 0}, at=50)
    assert moves(failover(), *WELL, edited) == [(50, A)]
    things = [one.what for one in said(failover(), *WELL, edited) if isinstance(one.what, SetWeights)]
    assert things[0].because == "Drift"


def test_nothing_is_asked_where_the_weights_are_already_as_they_should_be() -> None:
    assert moves(failover(), route(BOTH), unhealthy("a", at=0), healthy("b", at=0), healthy("c", at=0)) == []


def test_an_older_look_at_the_route_does_not_undo_a_newer_one() -> None:
    old = (60.0, route({"a": 1, "b": 1, "c": 0}, at=20)[1])
    assert moves(failover(), *WELL, route(A, at=50), old) == []


def test_a_route_not_listed_yet_is_no_reason_to_act() -> None:
    assert moves(failover(), unhealthy("a", at=0), healthy("b", at=0)) == []


def test_a_route_that_appears_later_is_decided_by_what_was_heard_before() -> None:
    early = [unhealthy("a", at=0), healthy("b", at=1), healthy("c", at=2)]
    assert moves(failover(tolerationSeconds=10), *early, route(A, at=5)) == [(10, BOTH)]
    assert moves(failover(tolerationSeconds=10), *early, route(A, at=50)) == [(50, BOTH)]


def test_a_deleted_route_holds_and_a_recreated_one_is_decided_again() -> None:
    gone, back = route({}, at=20, exists=False), route(A, at=40)
    assert holds(failover(), *WELL, gone, unhealthy("a", at=30), back) == [(20, "RouteNotFound")]
    assert moves(failover(), *WELL, gone, unhealthy("a", at=30), back) == [(40, BOTH)]


def test_a_backend_that_leaves_the_route_and_comes_back_is_decided_by_what_was_heard_meanwhile() -> None:
    without, again = route({"a": 1, "c": 0}, at=20), route(A, at=40)
    assert moves(failover(), *WELL, without, unhealthy("b", at=30), again, unhealthy("a", at=50)) == [(50, C)]


def test_a_route_that_cannot_be_used_holds_with_its_reason() -> None:
    assert holds(failover(), *WELL, route(A, at=20, problem="no rule 7")) == [(20, "RouteUnusable")]


def test_a_backend_of_the_rule_that_the_route_does_not_have_holds() -> None:
    rule = failover(backends=backends("a", "b", "z"))
    assert holds(rule, *WELL, unhealthy("a", at=5)) == [(0, "RouteUnusable")]


def test_a_backend_that_is_added_to_the_route_is_used() -> None:
    more = route({"a": 1, "b": 0, "c": 0, "d": 0}, at=20)
    assert moves(failover(), *WELL, healthy("d", at=1), more, unhealthy("a", at=30)) == [
        (30, {"a": 0, "b": 1, "c": 1, "d": 1})
    ]


def test_backends_of_the_route_that_the_rule_does_not_name_are_left_alone() -> None:
    rule = failover(backends=backends("a", "b"))
    assert moves(rule, route({"a": 1, "b": 0, "canary": 5}), *WELL[1:3], unhealthy("a", at=5)) == [
        (5, {"a": 0, "b": 1})
    ]


def test_a_primary_that_is_no_backend_holds_until_it_is_one() -> None:
    rule = failover(primary="z")
    assert holds(rule, *WELL, unhealthy("a", at=5)) == [(0, "UnknownPrimary")]
    with_z = route({"a": 1, "z": 0}, at=30)
    assert moves(rule, *WELL, with_z, healthy("z", at=31)) == [(31, {"a": 0, "z": 1})]


def test_the_rules_primary_goes_before_the_annotation() -> None:
    stands = (route(A, annotations={"failover.linkerd.io/primary-service": "b"}), *WELL[1:])
    assert moves(failover(primary="c"), *stands) == [(0, C)]
    assert moves(failover(), *stands) == [(0, B)]


def test_a_backend_of_another_namespace_is_watched_there() -> None:
    rule = failover(route_kind="HTTPRoute")
    stands = (route({"a": 1, "pay/b": 0}, kind="HTTPRoute"), healthy("a", at=0), healthy("service/east/pay/b", at=0))
    assert moves(rule, *stands, unhealthy("a", at=5)) == [(5, {"a": 0, "pay/b": 1})]


def test_two_rules_on_one_target_both_get_its_facts() -> None:
    other = failover(
        name="other", route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "api"}
    )
    events = (*WELL, route(A, name="api"), unhealthy("a", at=5))
    assert moves([failover(), other], *events) == [(5, BOTH), (5, BOTH)]


# --- backends without an observation -------------------------------------------------------------------------------


def test_traffic_is_not_moved_to_a_backend_without_an_observation() -> None:
    """It has a share already, and no probe: the route would depend on it alone."""
    rule = failover(backends=backends("a", "b"))
    both = route({"a": 1, "b": 1})
    assert moves(rule, both, unhealthy("a", at=0), until=60) == []
    assert holds(rule, both, unhealthy("a", at=0), until=60) == [(0, "NoHealthySecondary")]
    assert moves(rule, both, unhealthy("a", at=0), unknown("b", at=0), until=60) == []
    assert moves(rule, both, unhealthy("a", at=0), healthy("b", at=5), until=60) == [(5, {"a": 0, "b": 1})]


def test_one_without_an_observation_keeps_its_share_beside_one_that_is_ready() -> None:
    three = route({"a": 1, "b": 1, "c": 0})
    rule = failover(backends=backends("a", "b", "c"))
    assert moves(rule, three, unhealthy("a", at=5), healthy("c", at=0), until=60) == [(5, {"a": 0, "b": 1, "c": 1})]


def test_a_ready_one_of_a_higher_tier_is_better_than_one_without_an_observation() -> None:
    three = route({"a": 1, "b": 1, "c": 0})
    rule = failover(backends=backends("a", "b", {"service": "c", "tier": 2}))
    assert moves(rule, three, unhealthy("a", at=5), healthy("c", at=0), until=60) == [(5, {"a": 0, "b": 0, "c": 1})]


def test_what_was_moved_before_the_bus_was_wiped_stays_until_it_is_observed() -> None:
    rule = failover(backends=backends("a", "b"))
    assert said(rule, route({"a": 0, "b": 1}), unhealthy("a", at=0), until=60) == []
