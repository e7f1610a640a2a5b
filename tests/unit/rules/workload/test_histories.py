"""Events that never happen, whatever happens to clusters and copies. Random histories, judged from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import CancelEviction, Evict, Fact, Health, Observation, Place, Purge
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import RuleSet
from rules.rehearsal.simulation import Emitted, Simulator
from rules.rehearsal.simulation import at as at_
from tests.examples import many
from tests.unit.rules.builders import Event, rule_set
from tests.unit.rules.workload.builders import OBJECT, cluster, copy, in_time, placement, short, workload, workload_rule

NAMES = ("m1", "m2", "m3", "m4")
TOLERATES, BEARS = 40, 30
"""Seconds for which a bad cluster and a bad copy are tolerated."""


def rules(mode: str, expired: str, scheduling: dict[str, Any], insufficient: str, recovery: int) -> RuleSet:
    grace = {"gracePeriodSeconds": 50} if mode == "Gracefully" else {}
    behaviour = {"purgeMode": mode, **grace, "onGraceExpired": expired}
    return rule_set(
        workload_rule(
            placement=placement(*NAMES, tolerate=TOLERATES, replicaScheduling=scheduling),
            failover={
                "cluster": behaviour,
                "application": {**behaviour, "decisionConditions": {"tolerationSeconds": BEARS}},
            },
            onInsufficient=insufficient, recoverySeconds=recovery,
        )
    )  # fmt: skip


STATUSES = st.sampled_from(["Healthy", "Unhealthy", "Unknown"])
MOMENTS = st.integers(0, 400)
EVENTS = st.lists(
    st.tuples(st.sampled_from([cluster, copy]), st.sampled_from(NAMES), STATUSES, MOMENTS), max_size=30,
    unique_by=lambda event: (event[0], event[1], event[3]),  # a source says one thing of one moment
)  # fmt: skip
RULES = st.builds(
    rules, st.sampled_from(["Gracefully", "Directly", "Never"]), st.sampled_from(["Keep", "Purge"]),
    st.sampled_from([{"replicaSchedulingType": "Duplicated"}, {"replicaDivisionPreference": "Weighted"}]),
    st.sampled_from(["Keep", "Partial"]), st.sampled_from([0, 20]),
)  # fmt: skip


def history(events: Sequence[tuple[Any, str, str, int]]) -> list[Event]:
    made = [make(name, status, at=second) for make, name, status, second in events]
    return in_time([workload({"m1": 2, "m2": 2}, replicas=4), *made])


@dataclass(slots=True)
class World:
    """Knowledge of an onlooker: clusters with copies, and their observations."""

    copies: set[str] = field(default_factory=lambda: {"m1", "m2"})
    placed_at: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)
    """Since when."""
    said: dict[str, tuple[float, Health]] = field(default_factory=dict)
    """Target to when and what was last said of it."""
    stretches: dict[str, list[tuple[float, Health]]] = field(default_factory=dict)
    """Of each target: from when on it was in which status."""
    recovery: float = 0
    """Healthy for less than this many seconds is no recovery: the toleration waits meanwhile, and goes on after it."""
    wanted: int = 2
    """Number of copies when the first of them had to leave: fewer after a partial failover."""
    cancelled_at: float = -1
    """Second in which an eviction was last taken back: one that follows at once is of the same episode."""

    def hear(self, fact: Fact, second: float) -> None:
        if isinstance(fact, Observation):
            self.said[fact.target] = second, fact.status
            stretches = self.stretches.setdefault(fact.target, [(0.0, Health.HEALTHY)])
            if fact.status is not stretches[-1][1]:
                stretches.append((second, fact.status))

    def healthy(self, name: str) -> bool:
        when, status = self.said.get(f"workload/{name}/{OBJECT}", (-1.0, Health.UNKNOWN))
        return status is Health.HEALTHY and when > self.placed_at.get(name, -1)

    def judge(self, one: Emitted) -> None:
        action = one.what
        begins = not self.leaving and one.at not in {self.cancelled_at, *self.placed_at.values()}
        if begins and isinstance(action, Place | Evict) and action.because != "Recovered":
            self.wanted = len(self.copies)
        if isinstance(action, Place):
            for name in action.clusters.keys() - self.copies:
                _, status = self.said[f"cluster/{name}"]
                assert status is Health.HEALTHY, f"{one.at}: {name} gets a copy and is {status}"
            assert self.copies - self.leaving.keys() - set(action.leaving) <= action.clusters.keys()
            for name in action.clusters.keys() - self.copies:
                self.placed_at[name] = one.at
            self.copies |= action.clusters.keys()
        elif isinstance(action, Evict):
            if action.because == "Recovered":
                stay = self.copies - self.leaving.keys()
                assert len(stay) > self.wanted, f"{one.at}: {action.from_} is not too many"
            else:
                self.bad_for_long_enough(action.from_, one.at)
            self.leaving[action.from_] = one.at
            if action.purge_mode == "Directly":
                self.copies.discard(action.from_)
            else:
                assert self.copies - self.leaving.keys(), f"{one.at}: evicted with nowhere to go"
        elif isinstance(action, CancelEviction):
            self.leaving.pop(action.from_, None)
            self.cancelled_at = one.at
        elif isinstance(action, Purge):
            others = self.copies - {action.from_}
            assert others
            if self.lives(action.from_):
                assert any(self.healthy(name) for name in others), f"{one.at}: the last healthy copy is purged"
            self.copies.discard(action.from_)
            self.leaving.pop(action.from_, None)

    def lives(self, name: str) -> bool:
        """True if a copy that is left is known to be Healthy: on a bad cluster only by observations since."""
        bad = self.said.get(f"cluster/{name}", (0, Health.HEALTHY))[1] is not Health.HEALTHY
        heard = self.said.get(f"workload/{name}/{OBJECT}", (-1.0, Health.UNKNOWN))[0] >= self.leaving.get(name, 0)
        return self.healthy(name) and (heard or not bad)

    def bad_for_long_enough(self, name: str, now: float) -> None:
        by_cluster = self.bad_seconds(f"cluster/{name}", now) >= TOLERATES
        by_copy = self.bad_seconds(f"workload/{name}/{OBJECT}", now) >= BEARS
        bad = [
            self.said.get(target, (0, Health.UNKNOWN))[1] for target in (f"cluster/{name}", f"workload/{name}/{OBJECT}")
        ]
        assert (by_cluster and bad[0] is not Health.HEALTHY) or (by_copy and bad[1] is Health.UNHEALTHY)

    def bad_seconds(self, target: str, now: float) -> float:
        """For how long it has not been Healthy since it last was for long enough."""
        stretches = self.stretches.get(target, [(0.0, Health.UNKNOWN)])
        bad = 0.0
        for (begin, status), end in zip(stretches, [*(begin for begin, _ in stretches[1:]), now], strict=True):
            if status is not Health.HEALTHY:
                bad += end - begin
            elif end - begin >= self.recovery:
                bad = 0.0
        return bad


def played(
    given: RuleSet, events: Sequence[Event], *, restarts: bool = False
) -> Iterator[tuple[float, Fact | Emitted]]:
    """Play a history; with `restarts` the book is stored and read again between any two moments."""
    group_store = GroupStore(Routing.of(given))
    player = Simulator(group_store, outcomes=True)
    for second in sorted({*(when for when, _ in events), *map(float, range(0, 700, 25))}):
        if restarts:
            group_store = GroupStore(
                Routing.of(given), [load_group(dump_group(group)) for group in group_store.groups.values()]
            )
            said = player._said
            player = Simulator(group_store, outcomes=True)
            player._said = said
        for one in player.until(at_(second)):
            yield one.at, one
        facts = [fact for when, fact in events if when == second]
        for fact in facts:
            yield second, fact
        for one in player.take(facts, at_(second)):
            yield one.at, one


@given(RULES, EVENTS)
def test_no_history_purges_the_last_healthy_copy_evicts_into_nothing_or_acts_early(given: RuleSet, events: Any) -> None:
    [rule] = given.rules
    world = World(recovery=rule.recovery_seconds)
    for second, what in played(given, history(events)):
        if isinstance(what, Emitted):
            world.judge(what)
        else:
            world.hear(what, second)


@many(100)
@given(RULES, EVENTS)
def test_a_restart_at_any_moment_changes_nothing(given: RuleSet, events: Any) -> None:
    calm = [one for _, one in played(given, history(events)) if isinstance(one, Emitted)]
    restarted = [one for _, one in played(given, history(events), restarts=True) if isinstance(one, Emitted)]
    assert short(calm) == short(restarted)


@many(100)
@given(RULES, EVENTS)
def test_doubled_and_late_facts_change_nothing(given: RuleSet, events: Any) -> None:
    once = history(events)
    twice = in_time([*once, *((second + 3, fact) for second, fact in once if second)])
    calm = [one for _, one in played(given, once) if isinstance(one, Emitted)]
    again = [one for _, one in played(given, twice) if isinstance(one, Emitted)]
    assert short(calm) == short(again)


@pytest.mark.parametrize("mode", ["Gracefully", "Directly", "Never"])
def test_a_random_history_is_not_empty_of_deeds(mode: str) -> None:
    """The judge above has something to judge."""
    given = rules(mode, "Keep", {"replicaSchedulingType": "Duplicated"}, "Keep", 0)
    healthy = [cluster(name, "Healthy", at=0) for name in NAMES]
    events = [workload({"m1": 2, "m2": 2}), *healthy, cluster("m1", "Unhealthy", at=5), copy("m2", "Healthy", at=6)]
    came = [one.what for _, one in played(given, in_time(events)) if isinstance(one, Emitted)]
    assert {type(what).__name__ for what in came} >= {"Place", "Evict"}
