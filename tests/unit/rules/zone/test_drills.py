"""Practice runs: when they start, what ends them, and that what is real comes first."""

from __future__ import annotations

from typing import Any

from rules.kinds.zone.state import ZoneState
from tests.unit.rules.zone.builders import (
    FORWARD,
    ZONES,
    group_after,
    healthy,
    holds,
    isolate,
    listed,
    names,
    said,
    seen,
    steps,
    unhealthy,
    unknown,
    zone_rule,
)

DRILL, OVER = ["+Fence", "+ShiftTraffic"], ["-ShiftTraffic", "-Fence"]
WELL = [*listed(), *healthy(*ZONES, "service/prod/shop/web", at=0)]
TEN_PAST = {"cron": "10 0 * * *", "durationSeconds": 300}
"""From second 600 to second 900 of the first day."""


def drilling(**keys: Any) -> Any:
    return zone_rule(practice=TEN_PAST | keys)


def test_a_run_starts_with_its_window_and_comes_back_when_it_is_over() -> None:
    found = said(drilling(), WELL, until=2000)
    assert names(found) == DRILL + OVER
    assert [step[0] for step in steps(found)] == [600.0, 600.0, 900.0, 900.0]
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"Practice"}


def test_zones_take_turns_week_by_week() -> None:
    week = 7 * 86_400
    found = said(drilling(cron="10 0 * * 4"), WELL, until=4 * week)
    turns = [step[1] for step in steps(found) if step[4] == "Fence" and step[2] == "Failover"]
    assert sorted(turns[:3]) == list(ZONES)
    assert turns[3] == turns[0]


def test_a_zone_that_is_not_healthy_is_not_opened_by_the_end_of_its_run() -> None:
    found = said(drilling(zones=["a"]), WELL, unknown("a", at=700), healthy("a", at=5000), until=6000)
    assert [step[0] for step in steps(found)] == [600.0, 600.0, 5020.0, 5020.0]
    assert holds(found) == [(900.0, "prod/a", "ZoneNotRecovered")]


def test_no_run_starts_in_a_blocked_window() -> None:
    found = said(drilling(blockedWindows=[{"cron": "0 0 * * *", "durationSeconds": 900}]), WELL, until=2000)
    assert names(found) == []
    assert [getattr(one.what, "detail", "") for one in found] == ["PracticeInBlockedWindows: 0 0 * * * (UTC)"]


def test_a_run_that_was_skipped_is_not_caught_up_later_in_its_window() -> None:
    found = said(drilling(stopSignals=["service/prod/**"]), WELL, *_red(at=500, until=650), until=2000)
    assert names(found) == []
    assert [one[2] for one in holds(found)] == ["PracticeBlocked"]


def test_no_run_starts_that_the_other_zones_could_not_carry() -> None:
    found = said(drilling(), listed(demand_nodes=11), healthy(*ZONES, at=0), until=2000)
    assert names(found) == []
    detail = getattr(found[0].what, "detail", "")
    assert detail.startswith("CAPACITY_CHECK_FAILED: InsufficientCapacity: 10 healthy nodes would be left")


def test_a_stop_signal_ends_a_run() -> None:
    found = said(drilling(stopSignals=["service/prod/**"]), WELL, *_red(at=700, until=800), until=2000)
    assert names(found) == DRILL + OVER
    assert [step[0] for step in steps(found)][2:] == [700.0, 700.0]


def _red(*, at: float, until: float) -> list[list[Any]]:
    stop = "service/prod/shop/web"
    return [seen(stop, "Unhealthy", at=at, signals=["prom"]), seen(stop, "Healthy", at=until, signals=["prom"])]


def test_another_zone_that_fails_in_earnest_ends_a_run_and_is_isolated() -> None:
    found = said(drilling(zones=["a"]), WELL, unhealthy("b", at=650), until=899)
    assert names(found) == [*DRILL, *OVER, *FORWARD]
    assert {step[1] for step in steps(found)[4:]} == {"b"}


def test_a_drilled_zone_that_fails_in_earnest_is_isolated_with_the_rest_of_the_plan() -> None:
    found = said(drilling(zones=["a"]), WELL, unhealthy("a", at=650), until=2000)
    assert names(found) == FORWARD
    assert [step[0] for step in steps(found)][2:] == [660.0] * 3


def test_a_person_who_wants_the_drilled_zone_gets_it_and_another_after_the_run() -> None:
    same = said(drilling(zones=["a"]), WELL, isolate("a", at=650), until=2000)
    assert names(same) == FORWARD
    other = said(drilling(zones=["a"]), WELL, isolate("b", at=650), isolate("b", at=660, by="eve"), until=2000)
    assert names(other) == [*DRILL, *OVER, *FORWARD]
    assert holds(other) == [(650.0, "prod/b", "MaxIsolatedZones")]


def test_no_run_starts_while_a_zone_is_isolated() -> None:
    found = said(drilling(), WELL, isolate("a", at=500), until=2000)
    assert names(found) == FORWARD
    assert [one[2] for one in holds(found)] == ["PracticeBlocked"]


def outcome_of(rule: Any, *events: list[Any], until: float) -> str:
    state = group_after(rule, *events, until=until).state
    assert isinstance(state, ZoneState)
    return state.practice_outcome


def test_a_run_is_remembered_by_its_result() -> None:
    rule = drilling(zones=["a"], stopSignals=["service/prod/**"])
    assert outcome_of(rule, WELL, until=800) == "PENDING"
    assert outcome_of(rule, WELL, until=1000) == "SUCCEEDED"
    assert outcome_of(rule, WELL, *_red(at=700, until=800), until=1000) == "FAILED"
    assert outcome_of(rule, WELL, unhealthy("b", at=650), until=899) == "INTERRUPTED"
    assert outcome_of(drilling(zones=["a"]), listed(demand_nodes=11), until=1000) == "CAPACITY_CHECK_FAILED"


def test_no_run_starts_while_a_stop_signal_has_no_observation() -> None:
    rule = drilling(zones=["a"], stopSignals=["zone/prod/b", "custom/payments"])
    found = said(rule, WELL, until=1000)
    assert (names(found), [hold[2] for hold in holds(found)]) == ([], ["PracticeBlocked"])
    assert "custom/payments has no observation" in getattr(found[0].what, "detail", "")
