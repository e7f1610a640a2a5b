"""Any fleet, any constraints, any purge modes, any failures: no broken constraint, no copy lost or left over.

The judge knows the actions and the facts alone, and checks the promises to users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.messages import CancelEviction, Evict, Fact, Hold, Observation, Place, Purge
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Emitted, Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    cluster,
    clusters,
    copy,
    divided,
    in_time,
    member,
    placement,
    workload,
    workload_rule,
)

NAMES = ["m1", "m2", "m3", "m4", "m5", "m6"]
FIELDS = ("region", "zone", "provider")
ENDS = 600
"""From then on everything is well."""
SCHEDULING: dict[str, dict[str, Any]] = {
    "duplicated": {"replicaSchedulingType": "Duplicated"},
    "static": divided(m1=3, m2=1, m3=2, m4=1, m5=1, m6=2),
    "dynamic": {**divided(), "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
    "aggregated": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
}
MODES = st.sampled_from(["Gracefully", "Gracefully", "Directly", "Never"])


@dataclass
class Fleet:
    """A workload and where it may be, with the constraints that its copies keep."""

    kind: str
    where: list[str]
    groups: dict[str, dict[str, str]]
    constraints: list[tuple[str, int, int]]
    rule: dict[str, Any]
    told_number: bool = True
    """True if inventory has the number, as Karmada's does; with plain clusters it is that of the copies."""
    copies: dict[str, int] = field(default_factory=dict)
    placed: dict[str, float] = field(default_factory=dict)
    """Second of placement of each copy that was not there at first, or got more replicas."""
    leaving: dict[str, str] = field(default_factory=dict)
    """Cluster to purge mode."""
    grace: dict[str, float] = field(default_factory=dict)
    """Until when each of these may stay."""
    back: dict[str, int] = field(default_factory=dict)
    """Divided replicas that others had taken over when their copy came back, while there are too many."""
    acted: float = -1
    """Second of the last action."""
    told: dict[tuple[str, str], tuple[str, float, float]] = field(default_factory=dict)
    """Status by kind and cluster: the last one, since when it is so, and when it was last reported."""

    @property
    def replicas(self) -> int:
        """The placement's number."""
        return 2 if self.kind == "duplicated" else 2 * len(self.where)

    @property
    def stay(self) -> dict[str, int]:
        return {name: count for name, count in self.copies.items() if name not in self.leaving}

    def begin(self) -> list[Event]:
        self.copies = dict.fromkeys(self.where, 2)
        replicas = self.replicas if self.told_number else None
        fields: dict[str, Any] = {name: {one: self.groups[one][name] for one in FIELDS} for name in NAMES}
        known = [member(name, **fields[name]) for name in NAMES]
        return [workload(self.copies, replicas=replicas), *clusters("Healthy", *NAMES), *known]

    def follow(self, one: Emitted) -> None:
        action = one.what
        if isinstance(action, Place | Evict | Purge | CancelEviction):
            self.acted = one.at
        if isinstance(action, Place):
            self.follow_place(action)
            new = action.clusters.keys() - self.copies.keys()
            changed = [name for name, count in action.clusters.items() if self.copies.get(name) != count]
            self.placed |= dict.fromkeys(changed, one.at)
            self.copies |= action.clusters
            if new:
                self.judge({*action.clusters}, one.at)
        elif isinstance(action, Evict) and action.purge_mode == "Directly":
            del self.copies[action.from_]
        elif isinstance(action, Evict):
            self.leaving[action.from_] = action.purge_mode
            self.grace[action.from_] = one.at + (action.grace_period_seconds or 0)
            assert self.copies.keys() - self.leaving.keys(), f"{one.at}: evicted with nowhere to go"
        elif isinstance(action, CancelEviction):
            del self.leaving[action.from_]
            self.back[action.from_] = self.copies[action.from_]
        elif isinstance(action, Purge):
            assert self.leaving.pop(action.from_) != "Never", "a person removes it"
            assert any(map(self._seen_healthy, self.stay)), f"{one.at}: the last copy that is Healthy is purged"
            del self.copies[action.from_]

    def follow_place(self, action: Place) -> None:
        """Nothing is placed beyond the number, and nothing is taken away but what is too many."""
        if self.kind == "duplicated":
            return
        before = sum(self.stay[name] for name in self.stay.keys() & action.clusters.keys())
        after = sum(action.clusters.values())
        assert after <= max(before, self.replicas), f"{action.clusters} beside {self.stay}"
        if action.leaving:
            assert after >= before, f"{action.clusters} takes from {self.stay}"
        else:
            assert action.because == "Recovered"
            assert self.replicas <= after < before
            assert all(map(self._serves, self.stay)), "nothing shrinks before all others are seen Healthy"

    def hear(self, fact: Fact, second: float) -> None:
        if isinstance(fact, Observation):
            what, name = fact.target.split("/")[:2]
            status, since, _ = self.told.get((what, name), ("", second, second))
            self.told[what, name] = (fact.status, since if status == fact.status else second, second)

    def count(self, second: float) -> None:
        """No more copies than there were, or than the constraint allows, besides those in a grace period.

        What is bad, or has been good for too short, may wait for a place, and for a source to see it. What a person has
        to remove counts for nothing, and what would be the last one that serves stays beyond its grace period.
        """
        self.sum(second)
        stay = self.copies.keys() - self.leaving.keys()
        counted = {name for name in stay if not self._bad(name, second)}
        if any(self._serves(name) and not self._bad(name, second) for name in stay):
            counted |= {name for name, until in self.grace.items() if self._overdue(name, until, second)}
        most = next(most for what, _, most in self.constraints if what == "cluster")
        most = len(self.where) if self.kind == "duplicated" else most
        assert not most or len(counted) <= most, (
            f"{second}: at most {most}, and copies on {self.copies}, leaving {self.leaving}"
        )

    def sum(self, second: float) -> None:
        """No more divided replicas than there were, besides those in a grace period; also of those that came back while
        others had taken them over, as soon as all are well and seen Healthy since."""
        total = sum(self.stay.values())
        if self.kind == "duplicated" or total <= self.replicas:
            self.back = {}
            return
        assert total <= self.replicas + sum(self.back.values()), f"{second}: {self.stay}, came back {self.back}"
        assert max(self.stay.values()) <= self.replicas, f"{second}: each has at most the whole number"
        quiet = all(mode == "Never" for mode in self.leaving.values())
        seen = all(self.told.get(("workload", name), ("", 0, -1))[2] > self.acted for name in self.stay)
        well = all(self._serves(name) and not self._bad(name, second) for name in self.stay)
        assert not (quiet and seen and well), f"{second}: {self.stay} are too many, and all are well"

    def _overdue(self, name: str, until: float, second: float) -> bool:
        return self.leaving.get(name) == "Gracefully" and second > until

    def _bad(self, name: str, second: float) -> bool:
        return any(
            status != "Healthy" or second < since + self.rule["recoverySeconds"]
            for what in ("cluster", "workload")
            if (what, name) in self.told
            for status, since, told in [self.told[what, name]]
            if what == "cluster" or told > self.placed.get(name, -1)
        )

    def _serves(self, name: str) -> bool:
        """True if a copy was reported Healthy since it was placed, and its cluster has not failed since."""
        status, _, told = self.told.get(("workload", name), ("", 0, -1))
        return status == "Healthy" and told > self.placed.get(name, -1) and self.told["cluster", name][0] == "Healthy"

    def _seen_healthy(self, name: str) -> bool:
        """True if a copy was reported Healthy since it was placed, and since its cluster is bad where it is."""
        status, _, told = self.told.get(("workload", name), ("", 0, -1))
        of_cluster, since, _ = self.told["cluster", name]
        return status == "Healthy" and told > self.placed.get(name, -1) and (of_cluster == "Healthy" or told >= since)

    def judge(self, names: set[str], second: float) -> None:
        """Each constraint that the copies kept at first is kept."""
        for what, least, most in self.constraints:
            count = len({self.groups[what][name] for name in names})
            kept = least <= count <= (most or len(NAMES))
            assert kept, f"{second}: {what} {least}..{most}, and copies on {sorted(names)}"


@st.composite
def fleets(draw: Any, names: Sequence[str] = NAMES) -> Fleet:
    kind = draw(st.sampled_from(sorted(SCHEDULING)))
    where = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    groups = {one: {name: draw(st.sampled_from("ab")) for name in NAMES} for one in FIELDS}
    groups["cluster"] = {name: name for name in NAMES}
    constraints = []
    for what in [*draw(st.lists(st.sampled_from(FIELDS), max_size=2, unique=True)), "cluster"]:
        stands = len({groups[what][name] for name in where})
        limits = [stands, stands + 1, 0]  # 0: there is no limit
        constraints.append((what, draw(st.sampled_from([1, stands])), draw(st.sampled_from(limits))))
    failover: dict[str, Any] = {"cluster": {"purgeMode": draw(MODES)}}
    if draw(st.booleans()):
        seconds = draw(st.sampled_from([0, 30]))
        failover["application"] = {"purgeMode": draw(MODES), "decisionConditions": {"tolerationSeconds": seconds}}
    for behaviour in failover.values():
        behaviour["blockPredecessorSeconds"] = draw(st.sampled_from([600, None]))
        if behaviour["purgeMode"] == "Gracefully":
            behaviour["gracePeriodSeconds"] = draw(st.sampled_from([10, 200]))
    spread = [{"spreadByField": what, "minGroups": least, "maxGroups": most} for what, least, most in constraints]
    body = placement(*NAMES, tolerate=20, replicaScheduling=SCHEDULING[kind], spreadConstraints=spread)
    rule = workload_rule(placement=body, failover=failover, recoverySeconds=draw(st.sampled_from([0, 5])))
    return Fleet(kind, where, groups, constraints, rule, draw(st.booleans()))


FAILURES = st.lists(
    st.tuples(
        st.sampled_from([cluster, cluster, copy]), st.sampled_from(NAMES),
        st.sampled_from(["Healthy", "Unhealthy", "Unhealthy", "Unknown"]), st.integers(1, ENDS - 1),
    ),
    max_size=25, unique_by=lambda event: (event[0], event[1], event[3]),
)  # fmt: skip


@given(fleets(), FAILURES)
@settings(max_examples=300)
@pytest.mark.long
def test_no_fleet_loses_or_gains_a_copy_or_breaks_a_constraint_that_was_kept(fleet: Fleet, failures: Any) -> None:
    judged(fleet, [make(name, status, at=second) for make, name, status, second in failures])


OUTAGES = st.lists(
    st.tuples(st.sampled_from(NAMES[:3]), st.integers(1, ENDS - 100), st.sampled_from([21, 27, 60, 99])), max_size=12
)
"""Cluster, second and length: longer than the toleration, and often shorter than the grace period."""


@given(fleets(NAMES[:3]), OUTAGES, FAILURES)
@settings(max_examples=300)
@pytest.mark.long
def test_no_outages_one_after_the_other_leave_more_replicas(fleet: Fleet, outages: Any, failures: Any) -> None:
    """The same with failures that nearly always move something, and words about copies between them."""
    events = [
        cluster(name, status, at=second)
        for name, begins, lasts in outages
        for status, second in (("Unhealthy", begins), ("Healthy", begins + lasts))
    ]
    events += [copy(name, status, at=second) for make, name, status, second in failures if make is copy]
    judged(fleet, events)


def judged(fleet: Fleet, failures: list[Event]) -> None:
    """Play the failures, judge each moment, and let everything be well in the end."""
    events = [*fleet.begin(), *failures]
    for second in (ENDS, ENDS + 10, ENDS + 700, ENDS + 1400):
        events += [make(name, "Healthy", at=second) for name in NAMES for make in (cluster, copy)]
    store = GroupStore(Routing.of(rule_set(fleet.rule)))
    simulator = Simulator(store, outcomes=True)
    events = in_time(events)
    for when in sorted({moment for moment, _ in events}):
        for second, together in groupby(simulator.until(at_(when)), key=lambda one: one.at):
            for one in together:
                fleet.follow(one)
            fleet.count(second)
        facts = [fact for moment, fact in events if moment == when]
        for fact in facts:
            fleet.hear(fact, when)
        for one in simulator.take(facts, at_(when)):
            fleet.follow(one)
        fleet.count(when)
        state = store.groups["nginx", OBJECT].state
        assert state is not None
        assert state.copies.keys() == fleet.copies.keys()
        if not state.moves:
            fleet.judge({*fleet.copies}, when)
    assert set(fleet.leaving.values()) <= {"Never"}, "everything is well, and somebody still waits"
    if fleet.kind == "duplicated":
        assert len(fleet.stay) == len(fleet.where)
    else:
        assert sum(fleet.stay.values()) == fleet.replicas


def test_a_copy_that_would_have_to_leave_again_at_once_is_not_taken_back() -> None:
    bounds = [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}]
    cluster_keys = {"purgeMode": "Gracefully", "gracePeriodSeconds": 10}
    application = {"purgeMode": "Directly", "decisionConditions": {"tolerationSeconds": 30}}
    rule = workload_rule(
        placement=placement(*NAMES, tolerate=20, replicaScheduling=SCHEDULING["aggregated"], spreadConstraints=bounds),
        failover={"cluster": cluster_keys, "application": application}, recoverySeconds=0,
    )  # fmt: skip
    groups = {one: dict.fromkeys(NAMES, "a") for one in FIELDS} | {"cluster": {name: name for name in NAMES}}
    fleet = Fleet("aggregated", ["m1", "m2", "m3"], groups, [("cluster", 3, 3)], rule)
    bad = [cluster("m1", "Unhealthy", at=1), cluster("m3", "Unhealthy", at=1), copy("m1", "Unhealthy", at=1)]
    events = [*fleet.begin(), *bad, cluster("m1", "Healthy", at=31)]
    simulator = Simulator(GroupStore(Routing.of(rule_set(rule))), outcomes=True)
    for when, fact in in_time(events):
        for one in (*simulator.until(at_(when)), *simulator.take([fact], at_(when))):
            assert not isinstance(one.what, CancelEviction), "the copy itself is bad, and its time is over"
            fleet.follow(one)
    assert set(fleet.leaving) == {"m1", "m3"}


def test_the_judge_has_something_to_judge() -> None:
    simulated = Fleet("duplicated", ["m1"], {"cluster": {name: name for name in NAMES}}, [("cluster", 1, 1)], {})
    simulated.groups |= {one: dict.fromkeys(NAMES, "a") for one in FIELDS}
    simulated.rule = workload_rule(placement=placement(*NAMES, tolerate=20), failover={"cluster": {}})
    events = [*simulated.begin(), cluster("m1", "Unhealthy", at=10), copy("m2", "Healthy", at=40)]
    store = GroupStore(Routing.of(rule_set(simulated.rule)))
    simulator = Simulator(store, outcomes=True)
    for when, fact in in_time(events):
        simulated.hear(fact, when)
        for one in (*simulator.until(at_(when)), *simulator.take([fact], at_(when))):
            assert not isinstance(one.what, Hold)
            simulated.follow(one)
    assert simulated.copies == {"m2": 2}
