"""A cluster that fails again soon after its recovery gets no copies, and keeps none that leaves it, for longer."""

from __future__ import annotations

from typing import Any

from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event
from tests.unit.rules.workload.builders import (
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


def rule(*names: str, **keys: Any) -> dict[str, Any]:
    given = {"recoverySeconds": 20, "backoff": {}, "placement": placement(*names, tolerate=30)}
    failover = {"cluster": {"blockPredecessorSeconds": None, "gracePeriodSeconds": 1000}}
    return workload_rule(**{**given, "failover": failover, **keys})


def fleet(*names: str) -> list[Event]:
    return [workload({"m1": 2}, replicas=2), *clusters("Healthy", *names), copy("m1", "Healthy", at=0)]


def flaps(name: str, *bad_and_good: tuple[float, float]) -> list[Event]:
    return [
        event
        for bad, good in bad_and_good
        for event in (cluster(name, "Unhealthy", at=bad), cluster(name, "Healthy", at=good))
    ]


def placed(*events: Event, names: tuple[str, ...] = ("m1", "m2", "m3"), **keys: Any) -> list[tuple[float, Any]]:
    said = acts(rule(*names, **keys), *fleet(*names), *events, until=2000)
    return [(second, where) for second, action, where in said if action == "Place"]


DIES = cluster("m1", "Unhealthy", at=150)


def test_a_cluster_that_flaps_gets_no_copy_while_it_waits() -> None:
    assert placed(DIES) == [(180, {"m2": 2})]
    assert placed(*flaps("m2", (10, 20)), DIES) == [(180, {"m2": 2})], "once is no flapping"
    often = flaps("m2", (10, 20), (50, 60), (100, 110))
    assert placed(*often, DIES) == [(180, {"m3": 2})], "recovered at 130, and it waits 80 s instead of 20"
    assert placed(*often, cluster("m1", "Unhealthy", at=161)) == [(191, {"m2": 2})]


def test_the_wait_has_a_limit_a_factor_and_is_forgotten() -> None:
    often = flaps("m2", (10, 20), (50, 60), (100, 110))
    for backoff, where in (
        ({"factor": 1}, "m2"), ({"maxSeconds": 60}, "m2"), ({"resetSeconds": 5}, "m2"), ({"factor": 3}, "m3"),
    ):  # fmt: skip
        assert placed(*often, DIES, backoff=backoff) == [(180, {where: 2})], backoff
    without = rule("m1", "m2", "m3")
    del without["backoff"]
    said = acts(without, *fleet("m1", "m2", "m3"), *often, DIES, until=2000)
    assert (180, "Place", {"m2": 2}) in said, "only where it is asked for"


def test_where_no_other_is_left_who_waits_takes_it_nevertheless() -> None:
    often = flaps("m2", (10, 20), (50, 60), (100, 110))
    assert placed(*often, DIES, names=("m1", "m2")) == [(180, {"m2": 2})]


def test_a_copy_that_leaves_a_flapping_cluster_does_not_turn_back() -> None:
    """The new copy is not Healthy yet when the cluster is back: without the wait the eviction is cancelled."""
    once = [*fleet("m1", "m2", "m3"), cluster("m1", "Unhealthy", at=200), cluster("m1", "Healthy", at=240)]
    assert turned(*once) == [260]
    often = [*flaps("m1", (10, 20), (50, 60), (100, 110)), *once]
    assert turned(*often) == [400]
    assert (260, "BackingOff") in holds(rule("m1", "m2", "m3"), *often, until=500)
    healthy = [*often, copy("m2", "Healthy", at=300)]
    assert acts(rule("m1", "m2", "m3"), *healthy, until=500)[-1] == (300, "Purge", "m1")


def turned(*events: Event) -> list[float]:
    said = acts(rule("m1", "m2", "m3"), *events, until=500)
    return [second for second, action, _ in said if action == "CancelEviction"]


def test_an_outage_of_many_clusters_makes_none_of_them_wait() -> None:
    names = ("m1", "m2", "m3")
    events = fleet(*names)
    for bad in (10, 50, 100):
        events += [*clusters("Unhealthy", *names, at=bad), *clusters("Healthy", *names, at=bad + 10)]
    said = acts(rule(*names, guards={"ratePerSecond": 1000}), *events, DIES, until=400)
    assert [(second, where) for second, action, where in said if action == "Place"] == [(180, {"m2": 2})]


def test_what_flaps_in_its_wait_fails_again_when_it_has_recovered() -> None:
    often = flaps("m2", (10, 20), (50, 60), (100, 110), (135, 137))
    assert placed(*often, cluster("m1", "Unhealthy", at=230)) == [(260, {"m3": 2})]


def test_what_is_told_says_until_when() -> None:
    events = [
        *fleet("m1", "m2", "m3"), *flaps("m1", (10, 20), (50, 60), (100, 110)), cluster("m1", "Unhealthy", at=200),
        cluster("m1", "Healthy", at=240),
    ]  # fmt: skip
    said = happens(rule("m1", "m2", "m3"), *events, until=300)
    [detail] = [one.what.detail for one in said if getattr(one.what, "held", "") == "BackingOff"]
    until = at_(400).isoformat()
    assert detail == f"m1 stays left until {until}: cluster/m1 has failed again 3 times soon after it had recovered"


def test_states_are_kept() -> None:
    assert list(states(rule("m1", "m2"), fleet("m1", "m2"), until=10))
