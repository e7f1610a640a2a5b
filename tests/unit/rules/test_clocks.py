"""Clocks differ: no rule acts before what it waits for has really lasted, by the clock of the process that saw it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.messages import Action, Hold, Observation, Outcome
from rules.core.reader import Reader
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.rehearsal.simulation import Emitted, Simulator, at
from tests.unit.rules.builders import (
    OBJECT,
    Event,
    backends,
    failover,
    healthy,
    notification,
    route,
    rule_set,
    seen,
    the_rule,
    unhealthy,
    unknown,
)
from tests.unit.rules.workload import builders as copies
from tests.unit.rules.zone import builders as zones

SKEW = 0.5
"""Largest difference between clocks in seconds."""
TICK = 2e-5
"""Moments have microseconds."""
BEFORE = 10
"""Seconds before the first event: whose clock is behind may date it so."""
WORDS = ("detail", "message", "because")
WELL = (route({"a": 1, "b": 0}), healthy("b", at=0), healthy("a", at=0))
FLAPS = [event for begin in (5, 100, 200) for event in (unhealthy("a", at=begin), healthy("a", at=begin + 20))]
LATER = [healthy("a", at=second) for second in (120, 135, 150, 400)]
ZONES = [*zones.listed(), *zones.healthy(*zones.ZONES, at=0)]
ZONE = [*ZONES, *zones.unhealthy("a", at=100), *zones.healthy("a", at=300)]
CLUSTERS = [copies.workload({"m1": 2}, replicas=2), *copies.clusters("Healthy", "m1", "m2", "m3")]
DEAD = [copies.cluster("m1", "Unhealthy", at=10), copies.copy("m1", "Unhealthy", at=10)]


def traffic(**keys: Any) -> dict[str, Any]:
    return failover(**({"backends": backends("a", "b"), "tolerationSeconds": 10, "recoverySeconds": 30} | keys))


def zone(**keys: Any) -> dict[str, Any]:
    return zones.zone_rule(**keys).model_dump(mode="json", by_alias=True, exclude_unset=True)


def workload(**failover_: Any) -> dict[str, Any]:
    return copies.workload_rule(placement=copies.placement("m1", "m2", "m3"), failover=failover_)


@dataclass(frozen=True)
class Story:
    """Rules and what happens, by a clock that all share."""

    rules: Sequence[Mapping[str, Any]]
    events: Sequence[Event]


def story(rules: Mapping[str, Any] | Sequence[Mapping[str, Any]], *events: Event) -> Story:
    return Story([rules] if isinstance(rules, Mapping) else rules, sorted(events, key=lambda event: event[0]))


STORIES = {
    "windows": story(traffic(), *WELL, *FLAPS),
    "back-off": story(traffic(failback={"backoff": {"maxSeconds": 50}}), *WELL, *FLAPS),
    "steps": story(traffic(steps=[{"percent": 10, "pauseSeconds": 60}]), *WELL, *FLAPS[:2]),
    "trial": story(traffic(failback={"mode": "Trial"}), *WELL, unhealthy("a", at=5), unknown("a", at=20), *LATER),
    "signals of the way back": story(
        traffic(signals=["health"], failback={"signals": ["probe"]}),
        *WELL, unhealthy("a", at=5), unknown("a", at=20), healthy("a", at=40, signal="probe"),
    ),
    "unknown taken for healthy": story(
        traffic(backends=backends("a", {"service": "b", "treatUnknownAs": "Healthy"}), tolerationSeconds=0),
        *WELL, unhealthy("b", at=1), unknown("b", at=5), *(unhealthy("a", at=second) for second in (6, 34.8, 36)),
    ),
    "overflow": story(
        traffic(overflow={}), *WELL, seen("a", "Healthy", at=20, healthy_percent=50), healthy("a", at=100),
    ),
    "zone": story(zone(), *ZONE),
    "zone that fails again": story(
        zone(failback={"backoff": {}}, cooldownSeconds=0),
        *ZONE, *zones.unhealthy("a", at=400), *zones.healthy("a", at=450),
    ),
    "cluster": story(workload(cluster={}), *CLUSTERS, *DEAD),
    "cluster that is tolerated longer": story(
        workload(cluster={}) | {"tolerationSeconds": 30}, *CLUSTERS, *DEAD
    ),
    "copy": story(workload(application={"decisionConditions": {"tolerationSeconds": 100}}), *CLUSTERS, DEAD[1]),
    "old copy that goes though the new one is not seen": story(
        workload(cluster={"gracePeriodSeconds": 60}) | {"onGraceExpired": "Purge"}, *CLUSTERS, *DEAD
    ),
    "copy that has just come": story(
        workload(application={"preConditions": {"delaySeconds": 200}}),
        *CLUSTERS, copies.copy("m1", "Healthy", at=1), DEAD[1],
    ),
    "copies that are bad in turn": story(
        workload(application={"decisionConditions": {"tolerationSeconds": 0}}),
        *CLUSTERS, copies.copy("m1", "Unhealthy", at=10), copies.copy("m2", "Unhealthy", at=20),
    ),
    "taint": story(
        {
            "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*",
            "tolerationSeconds": 10, "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
        },
        *CLUSTERS, DEAD[0],
    ),
    "notification": story(
        notification(tolerationSeconds=10, recoverySeconds=30), healthy("a", at=0), unhealthy("a", at=5),
        healthy("a", at=50),
    ),
}  # fmt: skip


def acts_of(
    told: Story,
    off: Callable[[Observation], float] = lambda _: 0,
    skew: float = 0,
    until: float = 2000,
    outcomes: float = 0,
) -> dict[tuple[str, str, int], float]:
    """Actions and the times that they are for, with their seconds. `off`: how far ahead the clock is that
    dates a fact."""
    book = GroupStore(Routing.of(rule_set(*told.rules)))
    book.reader = Reader(skew_seconds=skew)
    player = _Simulator(book, outcomes)
    out: list[Emitted] = []
    for when, together in groupby(told.events, key=lambda event: event[0]):
        out += player.until(at(when))
        facts = [fact for _, fact in together]
        out += player.take([_dated(one, off(one)) if isinstance(one, Observation) else one for one in facts], at(when))
    out += chain(player.until(at(until)), player.ring(at(until)))
    found: dict[tuple[str, str, int], float] = {}
    for one in out:
        if not isinstance(one.what, Hold):
            content = _content(one.what)
            found[*content, sum(known[:-1] == content for known in found)] = one.at
    return found


class _Simulator(Simulator):
    """Simulator whose outcomes are dated by a clock that is ahead."""

    def __init__(self, book: GroupStore, ahead: float) -> None:
        super().__init__(book, outcomes=True)
        self._ahead = timedelta(seconds=ahead)

    def _done(self, action: Action, now: datetime) -> Outcome:
        return super()._done(action, now + self._ahead)


def _content(action: Action) -> tuple[str, str]:
    """Type and fields of an action, without the texts for people, which have dates."""
    said = {name: one for name, one in action.shown.items() if name not in WORDS}
    return type(action).__name__, json.dumps(said, default=str, sort_keys=True)


def _dated(one: Observation, ahead: float) -> Observation:
    """As a source dates it whose clock is so far ahead."""
    return one.model_copy(update={"observed_at": max(one.observed_at + timedelta(seconds=ahead), at(-BEFORE))})


@pytest.mark.parametrize("name", STORIES)
def test_no_kind_acts_before_its_window_is_over_by_the_clock_that_dated_what_was_seen(name: str) -> None:
    """All sources are behind by the bound: what they saw seems to have lasted for longer than it has."""
    told = STORIES[name]
    true = acts_of(told)
    assert true
    early = acts_of(told, lambda _: -SKEW, outcomes=-SKEW)
    assert any(early[act] < second for act, second in true.items()), "the story has no window that could be early"
    found = acts_of(told, lambda _: -SKEW, SKEW, outcomes=-SKEW)
    assert found.keys() == true.keys()
    for act, second in true.items():
        assert second <= found[act] <= second + 4 * SKEW, act


@pytest.mark.parametrize("name", STORIES)
def test_a_clock_that_is_ahead_makes_nothing_early(name: str) -> None:
    true, found = acts_of(STORIES[name]), acts_of(STORIES[name], lambda _: SKEW, SKEW)
    assert all(found[act] >= second for act, second in true.items() if act in found)


@given(st.sampled_from(sorted(STORIES)), st.floats(0.01, 1.5), st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_is_early_whichever_clock_differs(name: str, skew: float, data: st.DataObject) -> None:
    off: dict[tuple[str, str], float] = {}

    def ahead(one: Observation) -> float:
        key = (one.target, one.signal)
        if key not in off:
            off[key] = data.draw(st.floats(-skew, skew), label=f"{key} is ahead by")
        return off[key]

    true, found = acts_of(STORIES[name]), acts_of(STORIES[name], ahead, skew)
    assert all(found[act] >= second - TICK for act, second in true.items() if act in found)


def test_what_is_at_once_stays_at_once() -> None:
    told = story(traffic(tolerationSeconds=0), *WELL, unhealthy("a", at=5))
    assert [*acts_of(told, skew=SKEW).values()] == [5]


def test_a_window_is_longer_by_the_skew_and_what_the_file_says_stays() -> None:
    rule = the_rule(tolerationSeconds=10)
    seen_ = rule.seen_with(timedelta(seconds=SKEW))
    assert (seen_.window(10), rule.window(10)) == (timedelta(seconds=10.5), timedelta(seconds=10))
    assert seen_.window(0) == timedelta()
    assert seen_.toleration_seconds == 10
    assert (seen_.model_dump(), seen_) == (rule.model_dump(), rule)
    assert seen_.seen_with(timedelta()).window(10) == timedelta(seconds=10), "it replaces what it was, and adds nothing"


def test_a_rule_for_many_routes_is_filled_in_again_for_other_clocks() -> None:
    named = [{"service": "{name}-a"}, {"service": "{name}-b"}]
    given_ = traffic(backends=named, route={"cluster": "east", "kind": "TrafficSplit", "selector": "app"})
    rule = rule_set(given_).rules[0]
    assert isinstance(rule, TrafficFailover)
    assert of_object(rule, OBJECT).window(10) == timedelta(seconds=10)
    longer = of_object(rule.seen_with(timedelta(seconds=SKEW)), OBJECT)
    assert longer.window(10) == timedelta(seconds=10.5)
    assert of_object(rule, OBJECT).window(10) == timedelta(seconds=10)
