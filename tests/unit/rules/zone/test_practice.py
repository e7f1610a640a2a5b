"""Practice runs and drains, by the public cases of AWS' zonal shift and of machine-controller-manager."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rules.kinds.zone.plan import drain_mode
from rules.kinds.zone.practice import ZoneShift, practice_outcome, practice_start, precedence

DATA = Path(__file__).parents[3] / "data"
CASES = json.loads((DATA / "guards.json").read_text("utf-8"))["cases"]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def cases(rule: str) -> list[Any]:
    return [pytest.param(case["inputs"], case["expect"], id=case["id"]) for case in CASES if case["rule"] == rule]


def shift(name: str | None) -> ZoneShift | None:
    return ZoneShift(name) if name is not None else None


@pytest.mark.parametrize(("given", "expect"), cases("arc.precedence"))
def test_a_person_comes_before_the_rule_and_the_rule_before_a_practice_run(
    given: dict[str, Any], expect: dict[str, Any]
) -> None:
    new, previous = precedence(shift(given["active"]), ZoneShift(given["start"]))
    assert {"new": new, "previous": previous} == expect


def minute(text: str) -> int:
    day, time = text.replace(":", " ", 1).split() if text[3] == ":" else text.split()
    hours, minutes = time.split(":")
    return (DAYS.index(day) * 24 + int(hours)) * 60 + int(minutes)


def inside(now: str, windows: list[str]) -> bool:
    """ARC's windows: `Fri:12:00-Fri:17:00`."""
    ends = [window.split("-") for window in windows]
    return any(minute(begin) <= minute(now) < minute(end) for begin, end in ends)


SCHEDULED = [case for case in cases("arc.practice_start") if not case.values[0]["allowed_windows"]]
"""A rule's practice runs by `cron`: outside of it there is none to be refused."""


@pytest.mark.parametrize(("given", "expect"), SCHEDULED)
def test_a_practice_run_starts_only_where_nothing_forbids_it(given: dict[str, Any], expect: dict[str, Any]) -> None:
    blocked = practice_start(
        window_blocked=inside(given["now"], given["blocked_windows"]),
        blocking_alarm="ALARM" in given["blocking_alarms"] + given["outcome_alarms"],
        active=shift(given["active_shift"]), capacity=given["capacity_balanced"],
    )  # fmt: skip
    assert ({"start": True} if blocked is None else {"start": False, "reason": blocked}) == expect


@pytest.mark.parametrize(("given", "expect"), cases("arc.practice_outcome"))
def test_the_result_of_a_practice_run(given: dict[str, Any], expect: dict[str, Any]) -> None:
    ran = timedelta(minutes=given["ran_minutes"])
    found = practice_outcome(ran, outcome_alarm=given["outcome_alarm_fired"], interrupted=given["interrupted"])
    assert {"outcome": found} == expect


@pytest.mark.parametrize(("given", "expect"), cases("mcm.drain_mode"))
def test_pods_of_a_dead_node_are_taken_away_and_others_are_asked(given: dict[str, Any], expect: dict[str, Any]) -> None:
    found = drain_mode(
        not_ready_seconds=given["node_not_ready_for_s"], forced=given["force_label"],
        elapsed_seconds=given["drain_elapsed_s"], timeout_seconds=given["drain_timeout_s"],
    )  # fmt: skip
    assert {"method": found} == expect
