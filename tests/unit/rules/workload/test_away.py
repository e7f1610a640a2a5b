"""The cluster that is left does not answer: its copy is replaced all the same, and purged as soon as it is back."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Action, Evict, Hold, Purge
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.workload.state import WorkloadState
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    happens,
    held_copy,
    placement,
    workload,
    workload_rule,
)


def rule(mode: str, **keys: Any) -> dict[str, Any]:
    given = {"placement": placement("m1", "m2", "m3", tolerate=100), "failover": {"cluster": {"purgeMode": mode}}}
    return workload_rule(**given | keys)


def answered(number: int, status: str, *, at: float) -> Event:
    reason = "ClusterUnreachable" if status == "Failed" else None
    return outcome(f"nginx/{OBJECT}/{number}", status, at=at, reason=reason)


DEAD = [
    workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3"), copy("m1", "Healthy", at=0),
    cluster("m2", "Unhealthy", at=10), copy("m3", "Healthy", at=130),
]  # fmt: skip
PLACED = (110.0, "Place", {"m1": 2, "m3": 2})


def test_a_copy_that_cannot_be_marked_is_purged_like_one_that_is() -> None:
    events = [*DEAD, answered(1, "Done", at=112), answered(2, "Failed", at=115)]
    came = acts(rule("Gracefully"), *events, outcomes=False, until=140)
    assert came == [PLACED, (112.0, "Evict", "m2"), (130.0, "Purge", "m2")]


def test_a_copy_that_cannot_go_first_keeps_no_other_from_being_placed() -> None:
    events = [*DEAD, answered(1, "Failed", at=115), answered(2, "Done", at=118)]
    came = acts(rule("Directly"), *events, outcomes=False, until=140)
    assert came == [(110.0, "Evict", "m2"), (115.0, "Place", PLACED[2]), (130.0, "Purge", "m2")]


def played(given: dict[str, Any], *events: Event, until: int) -> tuple[GroupStore, list[tuple[float, Action]]]:
    """The groups at the end, and which actions were published when, also again; alarms ring every five seconds."""
    group_store, out = GroupStore(Routing.of(rule_set(given))), []
    looks: list[Event | tuple[int, None]] = [*events, *((second, None) for second in range(0, until, 5))]
    for second, fact in sorted(looks, key=lambda one: one[0]):
        decisions = group_store.fire_due(at(second)) if fact is None else group_store.apply([fact], at(second))
        out += [(second, action) for one in decisions for action in one.actions]
        said = [fact for one in decisions for fact in one.emits]
        while said:  # its guards answer at once
            said = [fact for one in group_store.apply(said, at(second)) for fact in one.emits]
    return group_store, out


def published(given: dict[str, Any], verb: type[Action], *events: Event, until: int) -> list[float]:
    return [second for second, action in played(given, *events, until=until)[1] if isinstance(action, verb)]


def test_no_request_goes_to_a_dead_cluster_and_it_is_purged_when_it_is_back() -> None:
    events = [*DEAD, answered(1, "Done", at=112), answered(2, "Failed", at=115), answered(3, "Failed", at=135)]
    back = cluster("m2", "Healthy", at=5002)
    assert published(rule("Gracefully"), Purge, *events, back, until=5003) == [130, 5002]


def test_with_karmada_it_is_the_control_plane_that_did_not_answer_and_is_asked_again() -> None:
    events = [*DEAD, answered(1, "Done", at=112), answered(2, "Failed", at=115)]
    assert published(rule("Gracefully", carrier="Karmada"), Evict, *events, until=140)[:3] == [112, 120, 135]


def test_a_workload_that_vanishes_while_it_is_placed_leaves_word_of_where() -> None:
    events = [
        held_copy("m2", 2, at=0), *clusters("Healthy", "m1", "m2", "m3"), cluster("m2", "Unhealthy", at=10),
        held_copy("m2", None, at=115, exists=False),
    ]  # fmt: skip
    said = happens(rule("Gracefully"), *events, outcomes=False)
    (hold,) = [one.what for one in said if isinstance(one.what, Hold)]
    assert (hold.held, "its placement on m1 was under way" in hold.detail) == ("WorkloadNotFound", True), hold


@pytest.mark.parametrize(("second", "held"), [(116, True), (200, True), (3715, True), (3721, False)])
def test_that_a_workload_has_vanished_is_said_for_an_hour_although_its_placement_has_ended(
    second: int, held: bool
) -> None:
    events = [
        held_copy("m2", 2, at=0), *clusters("Healthy", "m1", "m2", "m3"), cluster("m2", "Unhealthy", at=10),
        held_copy("m2", None, at=115, exists=False), answered(1, "Failed", at=115),
        *(cluster("m3", "Healthy", at=later) for later in (115, 117, 150)),
    ]  # fmt: skip
    group = played(rule("Gracefully"), *events, until=second)[0].groups["nginx", OBJECT]
    assert (group.held is not None) is held
    assert group.held is None or "its placement on m1 was under way" in group.held.detail


def test_a_copy_that_was_to_leave_and_whose_health_is_unknown_by_now_is_not_replaced_with_another() -> None:
    events = [
        workload({"m1": 2, "m2": 2}), cluster("m1", "Unhealthy", at=0), copy("m2", "Unhealthy", at=0),
        copy("m2", "Unknown", at=20), cluster("m3", "Healthy", at=20),
    ]  # fmt: skip
    soon = {"decisionConditions": {"tolerationSeconds": 5}}
    given = rule("Gracefully", failover={"cluster": {}, "application": soon})
    assert acts(given, *events, outcomes=False, until=101) == [(100.0, "Place", {"m2": 2, "m3": 2})]


def test_a_copy_on_a_cluster_that_the_settings_name_no_more_is_replaced() -> None:
    gone = outcome(f"nginx/{OBJECT}/1", "Failed", at=115, reason="UnknownCluster")
    came = acts(rule("Directly"), *DEAD, gone, outcomes=False, until=125)
    assert came == [(110.0, "Evict", "m2"), (115.0, *PLACED[1:])]


def test_a_purge_whose_outcome_was_lost_ends_when_the_copy_is_seen_to_be_gone() -> None:
    """Its executor was killed after the write, and what is delivered again has waited too long: no try follows."""
    purging = [*DEAD, answered(1, "Done", at=112), answered(2, "Done", at=113)]
    lost = outcome(f"nginx/{OBJECT}/3", "Failed", at=142, reason="Waited")
    gone = held_copy("m2", None, at=142.5, exists=False)
    assert published(rule("Gracefully"), Purge, *purging, lost, until=150) == [130, 145]
    store, actions = played(rule("Gracefully"), *purging, lost, gone, until=150)
    assert [second for second, action in actions if isinstance(action, Purge)] == [130]
    (left,) = [one for one in store.groups.values() if isinstance(one.state, WorkloadState) and one.object == OBJECT]
    assert (left.state.moves, left.outbox) == ({}, ())


def test_a_purge_that_got_no_answer_is_tried_again_once_its_copy_is_seen_though_its_cluster_is_bad() -> None:
    """Its signal says that the cluster is bad, and its API server answers: else the copy stayed, with its mark."""

    def seen(when: float) -> Event:
        return copy("m2", "Unhealthy", at=when, signal="watch", source="watch")

    events = [*DEAD, answered(1, "Done", at=112), answered(2, "Done", at=115), answered(3, "Failed", at=135)]
    given = [*events, seen(137), seen(141), answered(3, "Failed", at=142), seen(150), seen(160)]
    assert published(rule("Gracefully"), Purge, *given, until=165) == [130, 141, 160]
    group_store, _ = played(rule("Gracefully"), *events, seen(137), until=139)
    lacks = [(one.target, one.since) for decision in group_store.fire_due(at(141)) for one in decision.lacks]
    assert lacks == [(f"workload/m2/{OBJECT}", at(140))]
