"""The way back of a rule whose signals need traffic: trials, waits that grow, signals of its own, drift, templates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Hold, SetWeights
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import load_rules
from rules.rehearsal.simulation import Emitted, Simulator, assumed_routes, at
from rules.rulefile.promql import is_ratio_of_rates, range_seconds
from tests.examples import many
from tests.unit.rules.builders import (
    Event,
    failover,
    healthy,
    holds,
    moves,
    outcome,
    paused,
    route,
    rule_file,
    rule_set,
    said,
    seen,
    unhealthy,
    unknown,
)

HOME, AWAY, TRIED = {"a": 1, "b": 0}, {"a": 0, "b": 1}, {"a": 5, "b": 95}
WELL = (route(HOME), healthy("b", at=0), healthy("a", at=0))
LEFT = (*WELL, unhealthy("a", at=5), unknown("a", at=20))
"""It leaves at 15: its errors were seen for ten seconds, and from 20 on it is Unknown."""


def trial(**keys: Any) -> dict[str, Any]:
    more = {key: keys.pop(key) for key in ("signals", "trial", "backoff") if key in keys}
    given_ = {"tolerationSeconds": 10, "recoverySeconds": 60, "backends": [{"service": "a"}, {"service": "b"}]}
    return failover(failback={"mode": "Trial", **more}, **(given_ | keys))


def causes(rules: Any, *events: Event, until: float = 1000) -> list[tuple[float, str]]:
    things = said(rules, *events, until=until)
    return [(one.at, one.what.because) for one in things if isinstance(one.what, SetWeights)]


def look(service: str, second: float, since: float, status: str = "Healthy", **more: Any) -> Event:
    """Observation by a source that can be asked, and since when without a break."""
    return seen(service, status, at=second, since=at(since), signal="probe", source="probe", **more)


def good(*seconds: float) -> list[Event]:
    return [healthy("a", at=second) for second in seconds]


# Trials.


def test_after_the_wait_the_primary_gets_a_small_part_and_then_everything() -> None:
    assert moves(trial(), *LEFT, *good(95, 110)) == [(15, AWAY), (80, TRIED), (140, HOME)]
    assert [because for _, because in causes(trial(), *LEFT, *good(95, 110))] == [
        "PrimaryUnhealthy", "Trial", "PrimaryHealthy",
    ]  # fmt: skip


def test_one_bad_reading_ends_a_trial_at_once_and_the_wait_doubles() -> None:
    bad = [unhealthy("a", at=95), unknown("a", at=100)]
    assert causes(trial(), *LEFT, *bad)[1:4] == [(80, "Trial"), (95, "TrialFailed"), (220, "Trial")]
    assert (100, "BackingOff") in holds(trial(), *LEFT, *bad, until=200)


@pytest.mark.parametrize("evidence", [[], [*good(95)], [*good(95, 110), unknown("a", at=130)]])
def test_a_trial_without_two_good_readings_or_unknown_at_its_end_has_failed(evidence: list[Event]) -> None:
    assert causes(trial(), *LEFT, *evidence, until=200)[1:] == [(80, "Trial"), (140, "TrialFailed")]


def test_a_trial_that_failed_for_want_of_evidence_is_tried_again_after_twice_the_wait() -> None:
    assert [at for at, because in causes(trial(), *LEFT, until=3000) if because == "Trial"] == [
        80, 140 + 120, 320 + 240, 620 + 480, 1160 + 960,
    ]  # fmt: skip


def test_the_wait_grows_no_longer_than_its_maximum_and_is_never_shorter_than_recovery() -> None:
    short = trial(backoff={"maxSeconds": 100})
    assert [at for at, because in causes(short, *LEFT, until=700) if because == "Trial"] == [80, 240, 400, 560]
    below = trial(backoff={"maxSeconds": 1})
    assert [at for at, because in causes(below, *LEFT, until=400) if because == "Trial"] == [80, 200, 320]


def test_without_recovery_the_wait_is_the_trials_length() -> None:
    assert [at for at, because in causes(trial(recoverySeconds=0), *LEFT, until=90) if because == "Trial"] == [80]


def test_what_is_bad_is_not_tried() -> None:
    still = (*WELL, unhealthy("a", at=10))
    assert causes(trial(), *still) == [(20, "PrimaryUnhealthy")]


def test_a_trial_goes_on_with_the_steps_that_are_not_below_it() -> None:
    steps = [{"percent": 2, "pauseSeconds": 60}, {"percent": 20, "pauseSeconds": 60}]
    assert moves(trial(steps=steps), *LEFT, *good(95, 110)) == [
        (15, AWAY), (80, TRIED), (140, {"a": 20, "b": 80}), (200, HOME),
    ]  # fmt: skip


def test_who_fails_soon_after_a_trial_waits_longer_and_later_begins_again() -> None:
    soon = [*good(95, 110), unhealthy("a", at=200), unknown("a", at=215)]
    assert (335, "Trial") in causes(trial(), *LEFT, *soon)
    late = [*good(95, 110), unhealthy("a", at=4000), unknown("a", at=4015)]
    assert (4075, "Trial") in causes(trial(), *LEFT, *late, until=5000)


def test_the_others_share_the_rest_while_a_trial_runs_and_with_none_of_them_all_stays() -> None:
    three = trial(backends=[{"service": name} for name in "abc"])
    stands = (route({"a": 1, "b": 0, "c": 0}), healthy("c", at=0), *LEFT[1:], unhealthy("c", at=90))
    assert moves(three, *stands, until=130)[1:] == [(80, {"a": 5, "b": 48, "c": 47}), (100, {"a": 5, "b": 95, "c": 0})]
    down = [unhealthy("b", at=90), *good(95, 110)]
    assert (100, "NoHealthySecondary") in holds(trial(), *LEFT, *down, until=130)
    assert moves(trial(), *LEFT, unhealthy("b", at=70), until=130) == [(15, AWAY)]


def test_readings_count_once_a_range_of_the_query_is_over() -> None:
    source = {
        "name": "errors", "kind": "PrometheusQuery", "prometheus": "main", "target": "service/east/shop/{service}",
        "query": "sum by (service) (rate(bad[30s])) / sum by (service) (rate(all[30s]))", "unhealthyWhen": {"above": 1},
    }  # fmt: skip
    rules = load_rules([("r.yaml", rule_file(trial(), sources=[source]))])
    left = [*WELL[:2], healthy("a", at=0, signal="errors"), unhealthy("a", at=5, signal="errors")]
    left += [unknown("a", at=20, signal="errors")]

    def ends(*seconds: float) -> str:
        events = [*left, *(healthy("a", at=second, signal="errors") for second in seconds)]
        player = Simulator(GroupStore(Routing.of(rules)), outcomes=True)
        out = [one for when, fact in events for one in (*player.until(at(when)), *player.take([fact], at(when)))]
        out += player.until(at(150))
        return [one.what.because for one in out if isinstance(one.what, SetWeights)][-1]

    assert ends(95, 105) == "TrialFailed"  # 110 is the first that counts
    assert ends(95, 109, 111) == "TrialFailed"
    assert ends(95, 111, 125) == "PrimaryHealthy"


def test_in_a_dry_run_a_trial_is_only_said_and_it_goes_back_as_automatic() -> None:
    rules = trial(mode="DryRun")
    events = (*WELL, unhealthy("a", at=10), healthy("a", at=100))
    assert causes(rules, *events) == [(20, "PrimaryUnhealthy"), (160, "Trial"), (220, "PrimaryHealthy")]
    assert moves(rules, *LEFT) == [(15, AWAY)]  # there is traffic, and its health is Unknown


def test_a_trial_survives_that_its_group_is_stored() -> None:
    rules = rule_set(trial())
    group_store = GroupStore(Routing.of(rules))
    player = Simulator(group_store, outcomes=True)
    for when, fact in LEFT:
        list(player.until(at(when)))
        list(player.take([fact], at(when)))
    list(player.until(at(90)))
    (group,) = group_store.groups.values()
    assert group.state.failover is not None
    assert group.state.failover.trial is not None
    assert load_group(dump_group(group)) == group


def test_a_pause_stops_a_trial_as_it_stops_everything() -> None:
    assert moves(trial(), *LEFT, paused(at=50), until=300) == [(15, AWAY)]


def test_guards_let_a_trial_pass_and_people_are_asked_once() -> None:
    calm = trial(guards={"cooldownSeconds": 3000})
    assert [at for at, _ in causes(calm, *LEFT, *good(95, 110))] == [15, 80, 140]
    asked = trial(guards={"approval": {"expireSeconds": 900}})
    away = [route(AWAY), healthy("b", at=0), unhealthy("a", at=0), unknown("a", at=20)]
    assert (80, "AwaitingApproval") in holds(asked, *away)
    assert causes(asked, *away) == []


# A constant fault writes little.


def closed_loop(rules: dict[str, Any], *, fault: float, seconds: int, every: int = 5) -> list[Emitted]:
    """The error ratio is known only of who has traffic: bad from 20 for so long, and good otherwise."""
    routing = Routing.of(rule_set(rules))
    player, weights, out = Simulator(GroupStore(routing), outcomes=True), dict(HOME), []

    def keep(things: Any) -> None:
        for one in things:
            out.append(one)
            if isinstance(one.what, SetWeights):
                weights.update(one.what.weights)

    keep(player.take([*assumed_routes(routing.rules.values(), [], 0)], at(0)))
    for second in range(0, seconds, every):
        keep(player.until(at(second)))
        bad = 20 <= second < 20 + fault
        status = {True: "Unhealthy", False: "Healthy"}[bad] if weights["a"] else "Unknown"
        facts = [("a", status), ("b", "Healthy")]
        keep(player.take([seen(name, said_, at=second, stale=90)[1] for name, said_ in facts], at(second)))
    return out


def test_a_fault_of_ten_minutes_writes_at_most_once_and_twice_for_each_of_three_trials() -> None:
    writes = [one for one in closed_loop(trial(), fault=600, seconds=620) if isinstance(one.what, SetWeights)]
    assert len(writes) <= 1 + 2 * 3


@many(40)
@given(st.integers(30, 2000), st.integers(5, 120), st.integers(1, 4), st.integers(5, 30))
def test_however_long_a_fault_lasts_its_writes_are_few_and_it_ends_on_primary(
    fault: int, recovery: int, factor: int, every: int
) -> None:
    backoff = {"factor": factor, "maxSeconds": 600}
    rules = trial(recoverySeconds=recovery, backoff=backoff)
    out = closed_loop(rules, fault=fault, seconds=fault + 3000, every=every)
    moved = [one.what for one in out if isinstance(one.what, SetWeights)]
    during = [action for action in moved if action.decided_at < at(20 + fault)]
    trials, wait, left = 0, float(max(recovery, 60)), float(fault)
    while left > wait:
        trials, left, wait = trials + 1, left - wait, max(min(wait * factor, 600), recovery)
    assert len(during) <= 1 + 2 * (trials + 1)
    assert not moved or dict(moved[-1].weights) == HOME


# The way back by signals of its own, or by hand.


def probed(**keys: Any) -> dict[str, Any]:
    return trial(**keys) | {"failback": {"signals": ["probe"]}}


def test_left_by_errors_it_returns_by_the_probe() -> None:
    left = [*WELL[:2], healthy("a", at=0, signal="probe"), unhealthy("a", at=5, signal="errors")]
    left += [unknown("a", at=20, signal="errors")]
    assert moves(probed(), *left) == [(15, AWAY), (80, HOME)]
    assert moves(probed(), *left, unhealthy("a", at=50, signal="probe"), healthy("a", at=70, signal="probe")) == [
        (15, AWAY), (130, HOME),
    ]  # fmt: skip


def test_the_healthy_of_a_series_that_left_with_the_traffic_brings_nothing_back() -> None:
    left = [*WELL[:2], healthy("a", at=0, signal="errors"), unhealthy("a", at=5, signal="errors")]
    left += [healthy("a", at=20, signal="errors")]
    assert moves(probed(), *left) == [(15, AWAY)]
    assert (20, "TargetUnknown") in holds(probed(), *left)


def test_by_hand_only_it_never_returns_by_itself() -> None:
    rules = trial() | {"failback": {"mode": "Manual"}}
    assert moves(rules, *WELL, unhealthy("a", at=10), healthy("a", at=100), until=9000) == [(20, AWAY)]


# Who fails again and again.


def flapping(*periods: tuple[float, float]) -> list[Event]:
    return [event for bad, good_ in periods for event in (unhealthy("a", at=bad), healthy("a", at=good_))]


def test_a_primary_that_fails_again_waits_twice_as_long_and_that_is_forgotten() -> None:
    rules = failover(recoverySeconds=60, backends=[{"service": "a"}, {"service": "b"}])
    events = flapping((10, 20), (100, 110), (300, 310), (9000, 9010))
    assert moves(rules, *WELL, *events, until=9900) == [
        (10, AWAY), (80, HOME), (100, AWAY), (230, HOME), (300, AWAY), (550, HOME), (9000, AWAY), (9070, HOME),
    ]  # fmt: skip
    assert (170, "BackingOff") in holds(rules, *WELL, *events, until=200)


def test_without_recovery_nothing_waits_unless_the_rule_says_so() -> None:
    events = flapping((10, 20), (30, 40), (50, 60))
    plain = failover(backends=[{"service": "a"}, {"service": "b"}])
    assert [at for at, weights in moves(plain, *WELL, *events) if weights == HOME] == [20, 40, 60]
    written = plain | {"failback": {"backoff": {"factor": 2}}}
    assert [at for at, weights in moves(written, *WELL, *events) if weights == HOME] == [20, 80]


def test_who_waits_serves_nevertheless_when_no_other_is_left() -> None:
    rules = failover(recoverySeconds=60, backends=[{"service": "a"}, {"service": "b"}])
    events = [*flapping((10, 20), (100, 110)), unhealthy("b", at=180)]
    assert moves(rules, *WELL, *events)[3:] == [(180, HOME)]


def test_a_secondary_that_flaps_waits_longer_too() -> None:
    rules = failover(recoverySeconds=60, backends=[{"service": name} for name in "abc"])
    stands = [route({"a": 1, "b": 0, "c": 0}), *WELL[1:], healthy("c", at=0), unhealthy("a", at=5)]
    both, alone = {"a": 0, "b": 1, "c": 1}, {"a": 0, "b": 1, "c": 0}
    events = [unhealthy("c", at=10), healthy("c", at=20), unhealthy("c", at=100), healthy("c", at=110)]
    assert moves(rules, *stands, *events) == [(5, both), (10, alone), (80, both), (100, alone), (230, both)]
    assert (170, "BackingOff") in holds(rules, *stands, *events)


# Drift.


def drifting(**keys: Any) -> dict[str, Any]:
    return failover(backends=[{"service": "a"}, {"service": "b"}], onDrift="Hold", **keys)


@pytest.mark.parametrize(
    ("events", "at", "stood"),
    [
        ([], 50, HOME),
        ([unhealthy("a", at=10)], 50, AWAY),
    ],
)
def test_weights_that_another_writer_has_changed_are_put_right_whatever_the_state(
    events: list[Event], at: float, stood: dict[str, int]
) -> None:
    rules = failover(backends=[{"service": "a"}, {"service": "b"}])
    assert causes(rules, *WELL, *events, route({"a": 3, "b": 4}, at=at))[-1] == (at, "Drift")
    assert moves(rules, *WELL, *events, route({"a": 3, "b": 4}, at=at))[-1] == (at, stood)


def test_in_a_trial_and_in_a_step_too() -> None:
    other = route({"a": 50, "b": 50}, at=90)
    assert causes(trial(), *LEFT, other, until=100)[1:] == [(80, "Trial"), (90, "Drift")]
    assert moves(trial(), *LEFT, other, *good(95, 110))[-2:] == [(90, TRIED), (140, HOME)]
    steps = failover(steps=[{"percent": 10, "pauseSeconds": 60}], recoverySeconds=10)
    stands = [*WELL, unhealthy("a", at=10), healthy("a", at=20), route({"a": 50, "b": 50}, at=40)]
    assert causes(steps, *stands, until=60)[1:] == [(30, "Returning"), (40, "Drift")]


def test_held_drift_stays_until_it_is_put_back_and_is_left_only_when_it_is_bad() -> None:
    changed = route({"a": 3, "b": 4}, at=50)
    assert moves(drifting(), *WELL, changed) == []
    assert holds(drifting(), *WELL, changed) == [(50, "DriftedByHand")]
    assert moves(drifting(), *WELL, changed, unhealthy("a", at=60)) == [(60, {"a": 0, "b": 4})]
    assert moves(drifting(), *WELL, changed, route(HOME, at=55), unhealthy("a", at=60)) == [(60, AWAY)]


def test_what_is_seen_first_is_no_drift() -> None:
    assert moves(drifting(), route({"a": 1, "b": 1}), *WELL[1:]) == [(0, HOME)]


def test_our_own_write_that_is_seen_before_its_outcome_is_no_drift() -> None:
    seen_first = [unhealthy("a", at=10), route(AWAY, at=11)]
    late = outcome("web/east/shop/TrafficSplit/web/1", "Done", at=12)
    things = said(drifting(), *WELL, *seen_first, late, outcomes=False)
    assert [one.what.held for one in things if isinstance(one.what, Hold)] == []


# What a query is.


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("up", 0), ("rate(x[5m])", 300), ('rate(x{a="[9h]"}[1m]) # [2d]', 60),
        ("max_over_time(rate(x[1m])[10m:30s])", 660),
        ("rate(x[1m30s] offset 5m)", 390), ("rate(a[1m]) / rate(b[5m])", 300),
    ],
)  # fmt: skip
def test_how_far_back_a_query_looks(query: str, seconds: float) -> None:
    assert range_seconds(query) == seconds


def test_a_ratio_of_rates_is_known() -> None:
    assert is_ratio_of_rates('sum(rate(e{path="/a"}[1m])) / sum(rate(r[1m]))')
    assert not is_ratio_of_rates('rate(e{path="/a/b"}[1m]) > 3')
    assert not is_ratio_of_rates("up / 2")


def test_a_signal_that_falls_silent_no_longer_says_that_it_is_bad() -> None:
    left = [route(HOME), healthy("b", at=0), healthy("a", at=0), unhealthy("a", at=10, stale=30)]
    assert causes(trial(), *left, until=200)[:2] == [(20, "PrimaryUnhealthy"), (100, "Trial")]


# A trial after a time in which no source looked.

SEEN_BAD = (
    route(HOME), look("b", 0, 0), look("a", 0, 0), look("a", 5, 5, "Unhealthy"), look("a", 15, 5, "Unhealthy"),
    look("b", 15, 0), look("a", 30, 30), look("a", 35, 30),
)  # fmt: skip
"""Traffic leaves the primary at 15, and from 30 to 35 it is seen to be well."""


def test_a_trials_wait_goes_on_where_the_source_has_looked_all_the_time() -> None:
    assert moves(trial(), *SEEN_BAD, look("a", 100, 30), look("b", 100, 0), until=110)[1:] == [(100, TRIED)]


def test_a_trials_wait_begins_again_after_a_time_in_which_no_source_looked() -> None:
    again = [look("a", 100, 100), look("b", 100, 0), look("a", 159, 100), look("a", 160, 100), look("b", 160, 0)]
    assert moves(trial(), *SEEN_BAD, *again, until=170)[1:] == [(160, TRIED)]
    silent = [
        look("a", 40, 30, stale=30),
        *(look("a", second, 85, stale=90) for second in (85, 145)),
        look("b", 145, 0),
    ]
    assert moves(trial(), *SEEN_BAD, *silent, until=170)[1:] == [(145, TRIED)], "though it was Unknown in between"


def test_a_trials_wait_begins_again_where_the_first_look_after_it_was_left_bridges_nothing() -> None:
    left = (*SEEN_BAD[:4], look("a", 15, 5, "Unhealthy"), look("b", 15, 0))
    told = [look("a", 16, 16, "Unknown"), look("a", 60, 60, "Unknown")]
    assert moves(trial(), *left, *told, until=200)[1:2] == [(120, TRIED)]


def test_what_is_not_known_without_traffic_is_tried_when_the_wait_is_over() -> None:
    told = [look("a", second, 16, "Unknown") for second in (16, 30, 60)]
    assert moves(trial(), *SEEN_BAD[:6], *told, until=80)[1:] == [(76, TRIED)]
    flips = [
        look("a", 16, 16, "Unknown"),
        look("a", 30, 30),
        look("a", 40, 40, "Unknown"),
        look("a", 70, 40, "Unknown"),
    ]
    assert moves(trial(), *SEEN_BAD[:6], *flips, until=80)[1:] == [(76, TRIED)], "no look says that it is bad"
