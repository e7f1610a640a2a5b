"""A rule that selects by label: workloads gain the label, and lose it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bus.messages import WorkloadCopy
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.workload.state import WorkloadState
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    happens,
    placement,
    workload,
    workload_rule,
)

YES = {"failover": "yes"}
SELECTING = workload_rule(
    resourceSelectors=[
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "labelSelector": {"matchLabels": YES}}
    ],
    placement=placement("m1", "m2", "m3", tolerate=30),
)
WELL = clusters("Healthy", "m1", "m2", "m3")
MOVED = [(50.0, "Place", {"m2": 1}), (50.0, "Evict", "m1")]


def together(labels: Mapping[str, str], *, at: float, **more: Any) -> Event:
    return workload({"m1": 1}, at=at, replicas=1, labels=dict(labels), **more)


def alone(labels: Mapping[str, str], *, at: float, name: str = "m1", exists: bool = True) -> Event:
    fact = WorkloadCopy(
        namespace="default", kind="Deployment", name="nginx", cluster=name, replicas=1, labels=dict(labels),
        exists=exists, observed_at=at_(at),
    )  # fmt: skip
    return at, fact


@pytest.mark.parametrize("listed", [together, alone])
def test_a_workload_with_the_label_is_moved(listed: Any) -> None:
    assert acts(SELECTING, *WELL, listed(YES, at=0), cluster("m1", "Unhealthy", at=20), until=60) == MOVED


@pytest.mark.parametrize("listed", [together, alone])
def test_a_workload_that_has_lost_the_label_is_left_alone(listed: Any) -> None:
    story = [*WELL, listed(YES, at=0), listed({}, at=10), cluster("m1", "Unhealthy", at=20)]
    assert happens(SELECTING, *story, copy("m1", "Unhealthy", at=20)) == []


@pytest.mark.parametrize("listed", [together, alone])
def test_one_whose_toleration_runs_when_it_loses_the_label_stays(listed: Any) -> None:
    story = [*WELL, listed(YES, at=0), cluster("m1", "Unhealthy", at=20), listed({}, at=40), listed({}, at=70)]
    assert happens(SELECTING, *story) == []


@pytest.mark.parametrize("listed", [together, alone])
def test_one_that_gets_its_label_back_is_moved_again(listed: Any) -> None:
    story = [*WELL, listed(YES, at=0), listed({}, at=10), cluster("m1", "Unhealthy", at=20), listed(YES, at=200)]
    assert acts(SELECTING, *story, until=250) == [(200.0, *what) for _, *what in MOVED]


@pytest.mark.parametrize("listed", [together, alone])
def test_a_late_word_does_not_give_the_label_back(listed: Any) -> None:
    _, late = listed(YES, at=5)
    story = [*WELL, listed(YES, at=0), listed({}, at=10), (15.0, late), cluster("m1", "Unhealthy", at=20)]
    assert happens(SELECTING, *story) == []


def test_what_was_begun_when_the_label_went_is_not_gone_on_with() -> None:
    """It is placed all the same, as that cannot be called back; the old copy is neither evicted nor purged."""
    never_answered = acts(
        SELECTING, *WELL, together(YES, at=0), cluster("m1", "Unhealthy", at=20), together({}, at=55),
        cluster("m2", "Unhealthy", at=60), until=2000, outcomes=False,
    )  # fmt: skip
    assert never_answered == [(50.0, "Place", {"m2": 1})]


def test_of_several_copies_only_those_with_the_label_count() -> None:
    both = [alone(YES, at=0), alone(YES, at=0, name="m2"), alone({}, at=10)]
    assert happens(SELECTING, *WELL, *both, cluster("m1", "Unhealthy", at=20), until=500) == []
    came = acts(SELECTING, *WELL, *both, cluster("m2", "Unhealthy", at=20), until=60)
    assert [(at, what) for at, what, _ in came] == [(50.0, "Place"), (50.0, "Evict")]


def test_a_workload_without_the_label_gets_no_group() -> None:
    group_store = GroupStore(Routing.of(rule_set(SELECTING)))
    group_store.apply([together({}, at=0)[1], alone({}, at=0)[1]], at_(0))
    assert ("nginx", OBJECT) not in group_store.groups


def test_that_it_is_left_alone_is_remembered() -> None:
    rule = rule_set(SELECTING).rules[0]
    facts = [fact for _, fact in (together(YES, at=0), together({}, at=10))]
    group = decide(rule, Group("nginx", OBJECT, WorkloadState()), facts, at_(10)).group
    assert not group.state.meant
    assert load_group(dump_group(group)) == group


@pytest.mark.parametrize("listed", [together, alone])
def test_what_was_said_of_a_copy_before_it_was_listed_counts(listed: Any) -> None:
    """The rule gets facts of a workload from when on it is listed with its label, and then those of before."""
    bad = copy("m1", "Unhealthy", at=20)
    before = acts(SELECTING, *WELL, bad, listed(YES, at=25))
    assert before == acts(SELECTING, *WELL, listed(YES, at=0), bad)
    assert [what[1] for what in before] == ["Place", "Evict"]


def test_no_rule_has_a_group_of_what_it_does_not_select() -> None:
    book = GroupStore(Routing.of(rule_set(SELECTING)))
    story = [copy("m1", "Unhealthy", at=1), together({"failover": "no"}, at=2), alone({}, at=3)]
    for when, fact in story:
        book.apply([fact], at_(when))
    assert not [key for key in book.groups if key[1] == OBJECT]
    when, fact = together(YES, at=4)
    book.apply([fact], at_(when))
    [group] = [group for key, group in book.groups.items() if key[1] == OBJECT]
    assert {target: member.status.value for target, member in group.members.items()} == {
        f"workload/m1/{OBJECT}": "Unhealthy"
    }
