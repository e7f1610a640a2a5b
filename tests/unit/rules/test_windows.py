"""Length of a bad time before a rule acts, and of a good time before it goes back."""

from __future__ import annotations

import pytest

from tests.unit.rules.builders import (
    backends,
    failover,
    healthy,
    holds,
    moves,
    route,
    seen,
    unhealthy,
    unknown,
)

AWAY, HOME = {"a": 0, "b": 1}, {"a": 1, "b": 0}
STANDS = (route(HOME), healthy("a", at=0), healthy("b", at=0))


def patient(toleration: float = 10, recovery: float = 0, **keys: object) -> dict[str, object]:
    return failover(tolerationSeconds=toleration, recoverySeconds=recovery, **keys)


def test_a_dead_primary_fails_over_exactly_when_its_toleration_is_over() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=5)) == [(15, AWAY)]


def test_without_a_toleration_the_first_unhealthy_observation_moves_traffic() -> None:
    assert moves(patient(0), *STANDS, unhealthy("a", at=5)) == [(5, AWAY)]


def test_a_flap_shorter_than_the_toleration_changes_nothing() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=5), healthy("a", at=14.9)) == []


def test_recovery_seen_in_the_very_instant_of_the_deadline_is_in_time() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=5), healthy("a", at=15)) == []


def test_a_window_that_was_over_before_the_recovery_moves_nothing_once_the_recovery_is_heard() -> None:
    # Bad from 5 to 15.5, both heard at 20: at 15 the action was due, at 20 it would leave a healthy primary.
    late = [unhealthy("a", at=5, heard=20), healthy("a", at=15.5, heard=20)]
    assert moves(patient(10, 60), *STANDS, *late) == []
    assert holds(patient(10, 60), *STANDS, *late) == [(20, "HealthyNow")]


def test_a_second_flap_restarts_the_window() -> None:
    flaps = [unhealthy("a", at=5), healthy("a", at=12), unhealthy("a", at=13)]
    assert moves(patient(10), *STANDS, *flaps) == [(23, AWAY)]


def test_repeated_bad_news_does_not_push_the_deadline_back() -> None:
    assert moves(patient(10), *STANDS, *(unhealthy("a", at=second) for second in range(5, 40))) == [(15, AWAY)]


def test_a_window_begins_when_the_failure_was_seen_not_when_it_was_received() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=5, heard=9)) == [(15, AWAY)]


def test_news_that_is_older_than_the_toleration_acts_when_it_is_heard_and_not_before() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=5, heard=40)) == [(40, AWAY)]


def test_a_clock_that_is_ahead_does_not_open_a_window_in_the_future() -> None:
    assert moves(patient(10), *STANDS, unhealthy("a", at=500, heard=5)) == [(15, AWAY)]


def test_late_bad_news_does_not_undo_newer_good_news() -> None:
    late = [healthy("a", at=20), unhealthy("a", at=10, heard=21)]
    assert moves(patient(10), *STANDS, *late) == []


def test_late_good_news_does_not_undo_newer_bad_news() -> None:
    late = [unhealthy("a", at=20), healthy("a", at=10, heard=25)]
    assert moves(patient(10), *STANDS, *late) == [(30, AWAY)]


def test_traffic_goes_back_only_after_the_recovery_time() -> None:
    assert moves(patient(10, 60), *STANDS, unhealthy("a", at=5), healthy("a", at=100)) == [(15, AWAY), (160, HOME)]


def test_a_dip_during_recovery_restarts_the_recovery() -> None:
    dip = [unhealthy("a", at=5), healthy("a", at=100), unhealthy("a", at=130), healthy("a", at=131)]
    assert moves(patient(10, 60), *STANDS, *dip) == [(15, AWAY), (191, HOME)]


# --- Unknown -----------------------------------------------------------------------------------------------------


def test_unknown_alone_never_moves_traffic() -> None:
    assert moves(patient(0), *STANDS, unknown("a", at=5)) == []
    assert moves(patient(10), *STANDS, *(unknown("a", at=second) for second in range(5, 500, 5))) == []


def test_an_open_window_waits_while_health_is_unknown_and_goes_on_afterwards() -> None:
    # 4 s bad, 20 s unknown, then bad again: 6 s are left.
    gap = [unhealthy("a", at=5), unknown("a", at=9), unhealthy("a", at=29)]
    assert moves(patient(10), *STANDS, *gap) == [(35, AWAY)]


def test_two_gaps_are_both_left_out_of_the_window() -> None:
    gaps = [
        unhealthy("a", at=5), unknown("a", at=7), unhealthy("a", at=17), unknown("a", at=20), unhealthy("a", at=50),
    ]  # fmt: skip
    assert moves(patient(10), *STANDS, *gaps) == [(55, AWAY)]


def test_unknown_does_not_clear_a_window() -> None:
    gap = [unhealthy("a", at=5), unknown("a", at=14), unhealthy("a", at=20)]
    assert moves(patient(10), *STANDS, *gap) == [(21, AWAY)]


def test_good_news_after_unknown_closes_the_window() -> None:
    gap = [unhealthy("a", at=5), unknown("a", at=9), healthy("a", at=12), unhealthy("a", at=13)]
    assert moves(patient(10), *STANDS, *gap) == [(23, AWAY)]


def test_unknown_is_no_recovery() -> None:
    gone = [unhealthy("a", at=5), unknown("a", at=30)]
    assert moves(patient(10, 5), *STANDS, *gone) == [(15, AWAY)]


def test_an_open_recovery_waits_while_health_is_unknown() -> None:
    gap = [unhealthy("a", at=5), healthy("a", at=100), unknown("a", at=110), healthy("a", at=200)]
    assert moves(patient(10, 60), *STANDS, *gap) == [(15, AWAY), (250, HOME)]


def test_a_window_that_waits_says_so() -> None:
    assert holds(patient(10), *STANDS, unhealthy("a", at=5), unknown("a", at=9)) == [(9, "TargetUnknown")]


def test_with_treat_unknown_as_unhealthy_not_knowing_counts_as_bad() -> None:
    assert moves(patient(10, treatUnknownAs="Unhealthy"), *STANDS, unknown("a", at=5)) == [(15, AWAY)]
    mixed = [unhealthy("a", at=5), unknown("a", at=9), unhealthy("a", at=12)]
    assert moves(patient(10, treatUnknownAs="Unhealthy"), *STANDS, *mixed) == [(15, AWAY)]


def test_a_target_without_an_observation_is_no_reason_to_act_even_then() -> None:
    never = (route(HOME), healthy("b", at=0))
    assert moves(patient(0, treatUnknownAs="Unhealthy"), *never) == []


# --- silence -----------------------------------------------------------------------------------------------------


def test_silence_past_stale_seconds_is_unknown_and_moves_nothing() -> None:
    silent = [route(HOME), healthy("a", at=0, stale=30), healthy("b", at=0)]
    assert moves(patient(0), *silent) == []


def test_a_source_that_dies_with_its_bad_news_stops_the_window() -> None:
    # Bad from 5 to 35, then silence: 30 of 60 s are over when it comes back.
    bad = [unhealthy("a", at=5, stale=30), unhealthy("a", at=100, stale=90)]
    assert moves(patient(60), *STANDS, *bad) == [(130, AWAY)]


def test_a_window_that_ends_just_as_its_witness_falls_silent_waits() -> None:
    assert moves(patient(30), *STANDS, unhealthy("a", at=5, stale=30)) == []


def test_a_refresh_keeps_an_observation_fresh() -> None:
    bad = [unhealthy("a", at=second, stale=30) for second in range(5, 100, 20)]
    assert moves(patient(60), *STANDS, *bad) == [(65, AWAY)]


def test_what_never_goes_stale_needs_no_refresh() -> None:
    assert moves(patient(600), *STANDS, unhealthy("a", at=5)) == [(605, AWAY)]


# --- several signals ---------------------------------------------------------------------------------------------


def test_the_worst_signal_decides() -> None:
    both = [healthy("a", at=5, signal="readiness"), unhealthy("a", at=5, signal="errors")]
    assert moves(patient(10), route(HOME), healthy("b", at=0), healthy("a", at=0, signal="readiness"), *both) == [
        (15, AWAY)
    ]


def test_one_signal_that_is_unknown_outweighs_one_that_is_healthy() -> None:
    mixed = [unhealthy("a", at=5, signal="x"), healthy("a", at=5, signal="y"), unknown("a", at=9, signal="x")]
    assert moves(patient(10), route(HOME), healthy("b", at=0), *mixed) == []


@pytest.mark.parametrize(("counts", "acts"), [("Hold", 31), ("Unhealthy", 22)])
def test_late_good_news_from_before_another_signal_knew_nothing_restarts_the_window(counts: str, acts: int) -> None:
    story = [
        unhealthy("a", at=5, signal="x"), unknown("a", at=12, signal="y"),
        healthy("a", at=10, heard=14, signal="x"), unhealthy("a", at=21, signal="x"),
    ]  # fmt: skip
    stands = (route(HOME), healthy("a", at=0, signal="x"), healthy("b", at=0))
    assert moves(patient(10, treatUnknownAs=counts), *stands, *story) == [(acts, AWAY)]


def test_signals_that_the_rule_does_not_name_do_not_count() -> None:
    noise = [healthy("a", at=0, signal="readiness"), unhealthy("a", at=5, signal="latency")]
    stands = (route(HOME), healthy("b", at=0, signal="readiness"))
    assert moves(patient(0, signals=["readiness"]), *stands, *noise) == []
    assert moves(patient(0, signals=["latency", "readiness"]), *stands, *noise) == [(5, AWAY)]


def test_a_resolved_alert_is_settled_by_a_signal_that_was_bad_in_the_same_episode() -> None:
    resolved = [
        healthy("a", at=0, signal="probe"), unhealthy("a", at=5, signal="alert"), unhealthy("a", at=7, signal="probe"),
        healthy("a", at=90, signal="probe"), seen("a", "Unknown", at=100, signal="alert", resolved=True),
    ]  # fmt: skip
    assert moves(patient(10, 20), route(HOME), healthy("b", at=0), *resolved) == [(15, AWAY), (120, HOME)]


def test_a_resolved_alert_is_not_settled_by_a_signal_that_was_healthy_all_the_time() -> None:
    # Endpoints that stay ready say nothing about errors: a Prometheus that died resolves its alerts as well.
    resolved = [
        healthy("a", at=0, signal="readiness"), unhealthy("a", at=5, signal="alert"),
        seen("a", "Unknown", at=100, signal="alert", resolved=True), healthy("a", at=130, signal="readiness"),
    ]  # fmt: skip
    assert moves(patient(10, 20), route(HOME), healthy("b", at=0), *resolved) == [(15, AWAY)]


def test_what_a_signal_was_in_an_earlier_episode_settles_nothing_in_this_one() -> None:
    before = [
        healthy("a", at=0, signal="probe"),
        unhealthy("a", at=5, signal="probe"),
        healthy("a", at=20, signal="probe"),
    ]
    resolved = [unhealthy("a", at=60, signal="alert"), seen("a", "Unknown", at=100, signal="alert", resolved=True)]
    history = [route(HOME), healthy("b", at=0), *before, *resolved, healthy("a", at=130, signal="probe")]
    assert moves(patient(10, 20), *history) == [(15, AWAY), (40, HOME), (70, AWAY)]


def test_a_resolved_alert_alone_is_no_recovery() -> None:
    resolved = [healthy("a", at=0), unhealthy("a", at=5), seen("a", "Unknown", at=100, resolved=True)]
    assert moves(patient(10), route(HOME), healthy("b", at=0), *resolved) == [(15, AWAY)]


def test_a_resolved_alert_that_goes_stale_is_unknown_from_that_moment_on() -> None:
    # Settled by the probe from 30 to 40, then waiting until 100: 50 s of 60 are left.
    resolved = [
        healthy("a", at=0, signal="probe"), unhealthy("a", at=5, signal="alert"), unhealthy("a", at=5, signal="probe"),
        healthy("a", at=20, signal="probe"),
        seen("a", "Unknown", at=30, signal="alert", resolved=True, stale=10), healthy("a", at=100, signal="alert"),
    ]  # fmt: skip
    assert moves(patient(10, 60), route(HOME), healthy("b", at=0), *resolved) == [(15, AWAY), (150, HOME)]


@pytest.mark.parametrize("order", [1, -1])
def test_facts_of_one_instant_are_one_step_in_any_order(order: int) -> None:
    # Half a picture would be: the primary is bad and no other backend is known.
    events = [route(HOME), unhealthy("a", at=0), healthy("b", at=0)][::order]
    assert moves(failover(backends=backends("a", "b")), *events) == [(0, AWAY)]
    assert holds(failover(backends=backends("a", "b")), *events) == []
