"""Backoff of bad copies that leave at once: one that replaces a bad one and is bad itself waits, longer each time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event
from tests.unit.rules.workload.builders import (
    OBJECT,
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
from tests.unit.rules.workload.test_flapping import states

NAMES = [f"m{number}" for number in range(1, 9)]


def rule(seconds: float = 0, **keys: Any) -> dict[str, Any]:
    application = {"decisionConditions": {"tolerationSeconds": seconds}, "blockPredecessorSeconds": None, **keys}
    return workload_rule(placement=placement(*NAMES), failover={"application": application})


def bad_everywhere(until: int, every: int = 1) -> list[Event]:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", *NAMES)]
    return [*events, *(copy(name, "Unhealthy", at=second) for name in NAMES for second in range(1, until, every))]


def placed(given: dict[str, Any], *events: Event, until: float = 3000) -> list[float]:
    return [second for second, action, _ in acts(given, *events, until=until) if action == "Place"]


@pytest.mark.parametrize("mode", ["Gracefully", "Directly", "Never"])
def test_a_workload_that_is_bad_everywhere_goes_on_more_and_more_slowly(mode: str) -> None:
    """Without a pause it was on all eight clusters after eight seconds."""
    times = placed(rule(purgeMode=mode), *bad_everywhere(until=1300, every=5), until=1300)
    assert times[0] == 1
    waits = [later - before for before, later in pairwise(times)]
    assert waits[:6] == [10, 20, 40, 80, 160, 320]
    assert {*waits[6:]} <= {320}


def test_the_hold_says_until_when_and_the_first_bad_copy_leaves_at_once() -> None:
    events = bad_everywhere(until=9)
    assert (2, "BackingOff") in holds(rule(), *events, until=8)
    [detail] = [one.what.detail for one in happens(rule(), *events, until=8) if getattr(one.what, "held", "")]
    assert detail == f"m2 keeps its copy until {at_(11).isoformat()}: a bad copy was replaced once in a row"


def test_a_copy_that_is_well_again_in_its_wait_stays() -> None:
    events = [*bad_everywhere(until=4), copy("m2", "Healthy", at=8)]
    assert placed(rule(), *events, until=500) == [1]


def test_ten_minutes_without_trouble_begin_again() -> None:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", *NAMES), copy("m1", "Unhealthy", at=1)]
    events += [copy("m2", "Healthy", at=2), copy("m2", "Unhealthy", at=602)]
    assert placed(rule(), *events, until=700) == [1, 602]
    events[-1] = copy("m2", "Unhealthy", at=600)
    assert placed(rule(), *events, until=700) == [1, 610]


def test_a_toleration_is_neither_longer_nor_shorter_by_it() -> None:
    times = placed(rule(30), *bad_everywhere(until=400), until=200)
    assert times[:4] == [31, 61, 91, 121]


def flaps(count: int, every: int, lasts: int) -> list[Event]:
    """m1's copy is bad for so long, again and again; its replacement is never seen."""
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", *NAMES), copy("m1", "Healthy", at=0)]
    for begins in range(20, 20 + count * every, every):
        events += [copy("m1", "Unhealthy", at=begins), copy("m1", "Healthy", at=begins + lasts)]
    return events


def left(*events: Event, seconds: float = 0, until: float = 3000, **keys: Any) -> list[float]:
    said = acts(rule(seconds, **keys), *events, until=until)
    return [second for second, action, where in said if action == "Evict" and where == "m1"]


def test_a_copy_that_flaps_leaves_more_and_more_seldom() -> None:
    """It left and came back with each of twenty flaps."""
    assert left(*flaps(20, every=29, lasts=15)) == [20, 59]
    assert left(*flaps(20, every=29, lasts=5)) == [20]
    assert left(*flaps(2, every=29, lasts=15), copy("m1", "Unhealthy", at=100)) == [20, 59, 120]


def test_a_copy_that_flaps_seldom_leaves_at_once() -> None:
    assert left(*flaps(2, every=615, lasts=15)) == [20, 635]
    assert left(*flaps(2, every=614, lasts=15)) == [20, 644], "600 s after it was good again"
    assert left(*flaps(4, every=29, lasts=15), seconds=12) == [32, 61, 90, 119], "a toleration is what it is"


def test_a_copy_on_a_cluster_that_flaps_leaves_at_once_when_it_is_bad_itself() -> None:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", *NAMES), copy("m1", "Healthy", at=0)]
    events += [cluster("m1", "Unhealthy", at=10), cluster("m1", "Healthy", at=320), copy("m1", "Unhealthy", at=330)]
    given = rule()
    given["failover"]["cluster"] = {}
    said = acts(given, *events, until=400)
    assert [second for second, action, where in said if (action, where) == ("Evict", "m1")] == [310, 330]


def test_what_waits_is_stored() -> None:
    found = [*states(rule(), bad_everywhere(until=60), until=60)]
    assert max(copy.replaces for state in found for copy in state.copies.values()) == 3, OBJECT
