"""No zone is taken out of service, and none brought back, against what is seen now (decision 21)."""

from __future__ import annotations

from typing import Any

from rules.rehearsal.simulation import at as moment
from tests.unit.rules.builders import Event
from tests.unit.rules.zone.builders import ZONES, holds, isolate, listed, said, seen, steps, zone_rule


def look(zone: str, status: str, at: float, since: float, *signals: str) -> list[Event]:
    """Observations of a zone by two probes, and since when without a break."""
    events: list[Event] = []
    for name in signals or ("inside", "outside"):
        events += seen(zone, status, at=at, signals=(name,), source=name, since=moment(since))
    return events


def start() -> list[list[Event]]:
    return [listed(), *(look(zone, "Healthy", 0, 0) for zone in ZONES)]


BAD = look("a", "Unhealthy", 100, 100)


def fences(*events: list[Event], **keys: Any) -> list[float]:
    return [step[0] for step in steps(said(zone_rule(**keys), *start(), *events)) if step[4] == "Fence"]


def test_a_zone_that_recovered_unheard_is_not_fenced() -> None:
    assert fences(BAD, look("a", "Healthy", 200, 105)) == []


def test_a_zone_is_fenced_once_two_sources_have_seen_it_bad_after_its_toleration() -> None:
    assert fences(BAD, look("a", "Unhealthy", 130, 100, "inside")) == []
    assert fences(BAD, look("a", "Unhealthy", 130, 100, "inside"), look("a", "Unhealthy", 131, 100, "outside")) == [131]


def test_a_zone_that_one_of_the_two_sees_healthy_now_is_not_fenced() -> None:
    assert fences(BAD, look("a", "Unhealthy", 130, 100, "inside"), look("a", "Healthy", 140, 104, "outside")) == []


def test_a_zone_that_failed_again_unheard_has_its_whole_toleration_once_more() -> None:
    assert fences(BAD, look("a", "Unhealthy", 130, 125)) == []
    assert fences(BAD, look("a", "Unhealthy", 130, 125), look("a", "Unhealthy", 136, 125)) == [136]


def test_a_person_isolates_a_zone_without_a_look() -> None:
    assert fences(BAD, isolate("a", at=105, force=True)) == [105]


def test_sources_that_do_not_answer_are_told_of() -> None:
    assert (112, "prod", "SourceSilent") in holds(said(zone_rule(), *start(), BAD))


def test_a_zone_comes_back_only_when_it_is_seen_healthy_after_its_recovery() -> None:
    isolated = [BAD, look("a", "Unhealthy", 111, 100)]
    good = look("a", "Healthy", 300, 300)
    rule = zone_rule()

    def undone(*events: list[Event]) -> list[float]:
        return [step[0] for step in steps(said(rule, *start(), *isolated, *events)) if step[4] == "Fence"][1:]

    assert undone(good) == []
    assert undone(good, look("a", "Unhealthy", 400, 305)) == []
    assert undone(good, look("a", "Healthy", 400, 300))[:1] == [400]


def test_signals_of_the_way_back_that_saw_the_zone_fail_again_unheard_have_to_see_it_healthy_once_more() -> None:
    isolated = [BAD, look("a", "Unhealthy", 111, 100), look("a", "Healthy", 300, 300)]
    rule = zone_rule(failback={"signals": ["inside", "outside"]})

    def undone(*events: list[Event]) -> list[float]:
        return [step[0] for step in steps(said(rule, *start(), *isolated, *events)) if step[4] == "Fence"][1:]

    again = look("a", "Healthy", 400, 395)
    assert undone(again) == []
    assert undone(again, look("a", "Healthy", 416, 395))[:1] == [416]
    assert undone(look("a", "Healthy", 400, 300))[:1] == [400]


def test_a_second_signal_that_was_silent_agrees_only_for_as_long_as_it_saw_the_zone_bad() -> None:
    inside = [look("a", "Unhealthy", at, 100, "inside") for at in range(100, 150, 4)]
    silent = seen("a", "Unhealthy", at=100, signals=("outside",), source="outside", since=moment(100), stale_seconds=8)
    again, late = look("a", "Unhealthy", 128, 125, "outside"), look("a", "Unhealthy", 136, 125, "outside")
    assert fences(*inside, silent, again) == []
    assert fences(*inside, silent, again, late) == [136]
