"""A zone that fails again soon after its return waits longer each time, up to a limit, and not for a person."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.builders import Event
from tests.unit.rules.zone.builders import (
    answered,
    failback,
    healthy,
    holds,
    isolate,
    listed,
    said,
    steps,
    unhealthy,
    zone_rule,
)

CALM = {"cooldownSeconds": 0, "steps": ["Fence"], "failback": {"backoff": {}}}


def story(*bad_and_good: tuple[float, float]) -> list[list[Event]]:
    events = [listed(), healthy("a", "b", "c", at=0)]
    for bad, good in bad_and_good:
        events += [unhealthy("a", at=bad), healthy("a", at=good)]
    return events


def returns(*events: list[Event], until: float = 1000, **keys: Any) -> list[float]:
    things = said(zone_rule(**{**CALM, **keys}), *events, until=until)
    return [second for second, _, phase, *_ in steps(things) if phase == "Failback"]


FLAPS = ((10, 30), (60, 80), (140, 160), (300, 320))


def test_the_wait_doubles_with_each_failure_after_a_return_where_that_is_asked_for() -> None:
    assert returns(*story(*FLAPS)) == [50, 120, 240, 480]
    assert returns(*story(*FLAPS), failback={}) == [50, 100, 180, 340]


def test_it_grows_to_its_limit_and_never_below_recovery_seconds() -> None:
    assert returns(*story(*FLAPS), failback={"backoff": {"maxSeconds": 50}}) == [50, 120, 210, 370]
    assert returns(*story(*FLAPS), failback={"backoff": {"maxSeconds": 1}}) == [50, 100, 180, 340]
    assert returns(*story(*FLAPS), failback={"backoff": {"factor": 1}}) == [50, 100, 180, 340]


def test_a_zone_that_was_well_for_long_enough_begins_again() -> None:
    reset = {"backoff": {"resetSeconds": 25}}
    assert returns(*story(*FLAPS), failback=reset) == [50, 120, 180, 340]


def test_who_fails_on_its_way_back_has_failed_again() -> None:
    events = [*story((10, 30)), unhealthy("a", at=49.5), healthy("a", at=55)]
    assert returns(*events) == [75]  # it had not come back yet
    fails = [unhealthy("a", at=52), healthy("a", at=70), answered(1, at=21), answered(3, at=63)]
    things = said(zone_rule(**CALM), *story((10, 30)), *fails, until=200, outcomes=False)
    assert [(second, phase) for second, _, phase, *_ in dict.fromkeys(steps(things))][:4] == [
        (20, "Failover"), (50, "Failback"), (62, "Failover"), (110, "Failback"),
    ]  # fmt: skip


def test_the_zone_says_until_when_and_why() -> None:
    things = said(zone_rule(**CALM), *story(*FLAPS[:2]), until=119)
    assert (100, "prod/a", "BackingOff") in holds(things)
    [hold] = [one.what.detail for one in things if getattr(one.what, "held", "") == "BackingOff"]
    assert hold.startswith("until 1970-01-01T00:02:00+00:00: a has failed again once after its return")


def test_a_person_skips_it_and_clears_it() -> None:
    events = [*story(*FLAPS[:2]), failback("a", at=85)]
    assert returns(*events) == [50, 100]
    assert returns(*events, unhealthy("a", at=140), healthy("a", at=160)) == [50, 100, 180]


def test_what_a_person_isolates_is_no_failure() -> None:
    events = [*story((10, 30)), isolate("a", at=60), failback("a", at=90), unhealthy("a", at=140), healthy("a", at=160)]
    assert returns(*events)[-1] == 180
