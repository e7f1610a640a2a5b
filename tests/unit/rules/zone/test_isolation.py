"""Conditions of an isolation, and the end of one that does not progress."""

from __future__ import annotations

import pytest

from tests.unit.rules.zone.builders import (
    FORWARD,
    STEPS,
    ZONES,
    answered,
    approved,
    healthy,
    holds,
    isolate,
    listed,
    names,
    paused,
    resumed,
    retry,
    said,
    seen,
    steps,
    unhealthy,
    unknown,
    zone_rule,
)

WELL = [*listed(), *healthy(*ZONES, at=0)]


def test_one_bad_zone_is_isolated_step_by_step_after_its_toleration() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100))
    assert steps(found) == [(110.0, "a", "Failover", "InProgress", step) for step in STEPS]
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"ZoneUnhealthy"}
    assert holds(found) == []


def test_a_dip_shorter_than_the_toleration_changes_nothing() -> None:
    assert said(zone_rule(), WELL, unhealthy("a", at=100), healthy("a", at=109.9)) == []


def test_one_signal_alone_isolates_nothing_and_says_so() -> None:
    found = said(zone_rule(), WELL, seen("a", "Unhealthy", at=100, signals=["prom"]))
    assert (names(found), holds(found)) == ([], [(110.0, "prod/a", "OneSourceOnly")])


def test_a_second_signal_counts_when_it_has_said_so_for_the_whole_toleration() -> None:
    one, other = (seen("a", "Unhealthy", at=at, signals=[name]) for at, name in ((100, "prom"), (150, "nodes")))
    assert [step[0] for step in steps(said(zone_rule(), WELL, one, other))] == [160.0] * len(STEPS)
    blip = seen("a", "Healthy", at=153, signals=["nodes"]), seen("a", "Unhealthy", at=158, signals=["nodes"])
    assert [step[0] for step in steps(said(zone_rule(), WELL, one, other, *blip))] == [168.0] * len(STEPS)
    gone = seen("a", "Healthy", at=153, signals=["nodes"])
    assert holds(said(zone_rule(), WELL, one, other, gone)) == [(110.0, "prod/a", "OneSourceOnly")]
    silent = seen("a", "Unknown", at=153, signals=["nodes"]), seen("a", "Unhealthy", at=155, signals=["nodes"])
    assert [step[0] for step in steps(said(zone_rule(), WELL, one, other, *silent))] == [162.0] * len(STEPS)


def test_without_an_inventory_no_zone_is_isolated() -> None:
    found = said(zone_rule(), healthy(*ZONES, at=0), unhealthy("a", at=100), isolate("b", at=200))
    assert names(found) == []
    assert holds(found)[:2] == [(110.0, "prod/a", "ZonesUnknown"), (200.0, "prod/b", "ZonesUnknown")]


def test_two_bad_zones_are_no_reason_to_isolate_one() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", "b", at=100))
    assert (names(found), holds(found)) == ([], [(110.0, "prod/a", "WidespreadFailure")])


def test_a_zone_that_is_bad_while_another_is_not_known_is_left_alone() -> None:
    found = said(zone_rule(), WELL, unknown("b", at=50), unhealthy("a", at=100))
    assert (names(found), holds(found)) == ([], [(110.0, "prod/a", "WidespreadFailure")])


def test_when_the_whole_world_goes_dark_nothing_happens() -> None:
    assert said(zone_rule(), WELL, unknown(*ZONES, at=100)) == []


def test_a_rule_that_takes_unknown_for_bad_still_wants_two_signals_and_well_known_others() -> None:
    rule = zone_rule(treatUnknownAs="Unhealthy")
    assert names(said(rule, WELL, unknown("a", at=100))) == FORWARD
    assert holds(said(rule, WELL, unknown("a", at=100, signals=["prom"])))[0][2] == "OneSourceOnly"
    assert holds(said(rule, WELL, unknown(*ZONES, at=100)))[0][2] == "WidespreadFailure"


def test_when_all_sources_fall_silent_nothing_happens() -> None:
    assert said(zone_rule(), listed(), healthy(*ZONES, at=0, stale_seconds=30)) == []


def test_expired_leases_elsewhere_make_the_reactor_the_blind_one() -> None:
    leases = listed(leases_expired={"b": 0.6, "c": 0.6})
    found = said(zone_rule(), leases, healthy(*ZONES, at=0), unhealthy("a", at=100))
    assert holds(found) == [(110.0, "prod/a", "WidespreadFailure")]
    assert [one.what.detail for one in found] == ["60% of leases elsewhere have expired"]


def test_where_leases_are_not_counted_nodes_that_are_not_healthy_count() -> None:
    nodes = listed(nodes={"a": (5, 5), "b": (5, 2), "c": (5, 2)})
    found = said(zone_rule(), nodes, healthy(*ZONES, at=0), unhealthy("a", at=100))
    assert holds(found) == [(110.0, "prod/a", "WidespreadFailure")]


@pytest.mark.parametrize(
    ("inventory", "reason"),
    [
        ({"api_reachable": False}, "ControlPlaneUnreachable"),
        ({"nodes": {"a": (5, 0), "b": (0, 0)}}, "SingleZone"),
        ({"nodes": {"b": (5, 5), "c": (5, 5)}}, "ZoneNotFound"),
        ({"single_zone_services": ("shop/db",)}, "SingleZoneServices"),
        ({"single_zone_services": ("a:shop/db",)}, "SingleZoneServices"),
        ({"quorum_members": {"a": 2, "b": 1}}, "QuorumAtRisk"),
        ({"quorum_members": {"a": 1, "b": 1}, "quorum_size": 3}, "QuorumAtRisk"),
        ({"quorum_members": {"b": 1}, "quorum_size": 3}, "QuorumAtRisk"),
        ({"nodes": {"a": (5, 0), "b": (5, 5), "c": (5, 2)}, "demand_nodes": 1}, "RemainingZonesUnhealthy"),
        ({"demand_nodes": 11}, "InsufficientCapacity"),
    ],
)
def test_what_the_other_zones_cannot_carry_holds_the_rule(inventory: dict[str, object], reason: str) -> None:
    found = said(zone_rule(), listed(**inventory), healthy(*ZONES, at=0), unhealthy("a", at=100))  # type: ignore[arg-type]
    assert (names(found), holds(found)) == ([], [(110.0, "prod/a", reason)])


def test_a_service_that_is_only_in_another_zone_holds_nothing() -> None:
    found = said(zone_rule(), listed(single_zone_services=("b:shop/db",)), unhealthy("a", at=100))
    assert names(found) == FORWARD


def test_a_guard_that_lets_go_lets_it_start() -> None:
    found = said(zone_rule(), listed(demand_nodes=11), unhealthy("a", at=100), listed(at=140))
    assert [step[0] for step in steps(found)] == [140.0] * len(STEPS)


def test_a_zone_that_recovers_before_its_guards_let_go_is_left_alone() -> None:
    found = said(zone_rule(), listed(demand_nodes=11), unhealthy("a", at=100), healthy("a", at=120), listed(at=140))
    assert names(found) == []


def test_a_step_that_is_not_done_in_time_fails_the_isolation_and_undoes_nothing() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), outcomes=False, until=289)
    assert names(found) == ["+Fence"]
    assert holds(found) == [(230.0, "prod/a", "StepFailed")]
    assert "Fence was not done within 120 s" in [getattr(one.what, "detail", "") for one in found]


def test_a_failed_step_is_tried_again_five_times_with_growing_pauses_and_then_waits_for_a_person() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), outcomes=False, until=90_000)
    # Told once for all tries, and once more when there are none left.
    tries = sum(60 * 2**number + 120 for number in range(5))
    assert holds(found) == [(230.0, "prod/a", "StepFailed"), (230.0 + tries, "prod/a", "RetriesExhausted")]


def test_a_step_that_is_done_by_another_try_ends_the_hold_and_the_next_one_is_told_again() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), answered(1, at=300), outcomes=False, until=1000)
    assert holds(found) == [(230.0, "prod/a", "StepFailed"), (600.0, "prod/a", "StepFailed")]


def test_a_person_can_ask_for_another_try_when_all_are_used_up() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), retry("a", at=50_000), outcomes=False, until=50_200)
    assert holds(found)[-1] == (50_120.0, "prod/a", "StepFailed")


def test_a_pause_stops_the_next_step_and_the_clock_of_the_one_that_runs() -> None:
    found = said(
        zone_rule(), WELL, unhealthy("a", at=100), paused(at=150), resumed(at=5000), outcomes=False, until=5130
    )
    assert holds(found) == [(150.0, "prod", "Paused"), (5120.0, "prod/a", "StepFailed")]


def test_a_paused_rule_starts_nothing() -> None:
    found = said(zone_rule(), WELL, paused(at=50), unhealthy("a", at=100), resumed(at=500))
    assert [step[0] for step in steps(found)] == [500.0] * len(STEPS)
    assert holds(found) == [(110.0, "prod/a", "Paused")]


def test_a_running_isolation_waits_before_its_next_step_while_another_zone_is_bad() -> None:
    other = [*unhealthy("b", at=105), *answered(1, at=110), *healthy("b", at=200)]
    found = said(zone_rule(), WELL, isolate("a", at=100), other, outcomes=False, until=300)
    assert [(step[0], step[4]) for step in steps(found)] == [(100.0, "Fence"), (220.0, "ShiftTraffic")]
    assert holds(found)[0] == (110.0, "prod/a", "WidespreadFailure")


@pytest.mark.parametrize(
    ("inventory", "reason"),
    [
        ({"single_zone_services": ("a:shop/db",)}, "SingleZoneServices"),
        ({"quorum_members": {"a": 1, "b": 1}}, "QuorumAtRisk"),
    ],
)
def test_a_running_isolation_waits_before_its_next_step_while_the_zone_has_the_last_of_something(
    inventory: dict[str, object], reason: str
) -> None:
    last = [*listed(at=105, **inventory), *answered(1, at=110), *listed(at=200)]  # type: ignore[arg-type]
    found = said(zone_rule(), WELL, isolate("a", at=100), last, outcomes=False, until=300)
    assert [(step[0], step[4]) for step in steps(found)] == [(100.0, "Fence"), (200.0, "ShiftTraffic")]
    assert holds(found) == [(110.0, "prod/a", reason)]


def test_a_failed_isolation_says_what_its_carrier_said_last() -> None:
    slow = answered(1, at=130, status="Failed", detail="2 of 5 nodes are fenced")
    found = said(zone_rule(), WELL, unhealthy("a", at=100), slow, outcomes=False, until=240)
    assert "Fence was not done within 120 s: 2 of 5 nodes are fenced" in [getattr(s.what, "detail", "") for s in found]


def test_a_step_that_is_done_too_late_counts_when_the_isolation_goes_on() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), answered(1, at=250), outcomes=False, until=300)
    assert [(step[0], step[4]) for step in steps(found)] == [(110.0, "Fence"), (290.0, "ShiftTraffic")]


def test_a_dead_zone_is_cut_before_its_pods_are_forced() -> None:
    dark = listed(at=10, nodes={"a": (5, 0), "b": (5, 5), "c": (5, 5)})
    found = said(zone_rule(force="AfterTimeout"), WELL, dark, unhealthy("a", at=400))
    assert names(found) == ["+Fence", "+ShiftTraffic", "+CutNetwork", "+Evacuate", "+Verify"]


def test_a_zone_that_is_dark_for_five_minutes_and_no_more_is_drained_first() -> None:
    dark = listed(at=110, nodes={"a": (5, 0), "b": (5, 5), "c": (5, 5)})
    assert names(said(zone_rule(), WELL, dark, unhealthy("a", at=400))) == FORWARD


def test_a_dry_run_rehearses_the_whole_plan_once() -> None:
    found = said(zone_rule(mode="DryRun"), WELL, unhealthy("a", at=100), until=5000)
    assert names(found) == FORWARD
    assert {getattr(one.what, "mode", None) for one in found} == {"DryRun"}


def test_in_mode_approve_one_yes_is_good_for_the_whole_plan() -> None:
    found = said(zone_rule(mode="Approve"), WELL, unhealthy("a", at=100), approved("a", at=150))
    assert holds(found) == [(110.0, "prod/a", "AwaitingApproval")]
    assert steps(found) == [(150.0, "a", "Failover", "InProgress", step) for step in STEPS]


def test_in_mode_approve_a_zone_that_recovers_while_it_waits_is_left_alone() -> None:
    found = said(zone_rule(mode="Approve"), WELL, unhealthy("a", at=100), healthy("a", at=120), approved("a", at=200))
    assert names(found) == []


def test_nodes_that_join_an_isolated_zone_are_fenced_too() -> None:
    fewer = listed(at=200, nodes={"a": (4, 0), "b": (5, 5), "c": (5, 5)})
    found = said(zone_rule(), WELL, unhealthy("a", at=100), fewer, listed(at=300))
    assert steps(found)[len(STEPS) :] == [(300.0, "a", "Failover", "Done", "Fence")]


def test_another_zone_that_turns_bad_is_told_why_it_is_not_isolated() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), unhealthy("b", at=200))
    assert holds(found) == [(210.0, "prod/b", "MaxIsolatedZones")]


def test_an_isolation_that_lasts_too_long_is_told_and_stays() -> None:
    found = said(zone_rule(expirySeconds=600), WELL, unhealthy("a", at=100), until=50_000)
    assert (names(found), holds(found)) == (FORWARD, [(710.0, "prod/a", "IsolationExpired")])


def test_an_isolation_that_expires_into_failback_still_waits_for_the_zone() -> None:
    rule = zone_rule(expirySeconds=600, onExpiry="Failback")
    found = said(rule, WELL, unhealthy("a", at=100), until=50_000)
    assert (names(found), holds(found)) == (FORWARD, [(710.0, "prod/a", "ZoneNotRecovered")])
