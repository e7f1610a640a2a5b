"""Effect of each action on a binding, so that Karmada's scheduler has nothing to take away from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.karmada.moves import cancelled, limits_of, moved, purged
from reactor.actions.karmada.tasks import BindingPlacement
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.workload.karmada_room import Limits
from rules.kinds.workload.model import Policy
from rules.rehearsal.karmada_carrier import limits_of as rehearsed_limits
from tests.examples import many
from tests.karmada.scheduler import Unschedulable, must_schedule, spread

NAMES = "abcde"


def clusters(**sizes: int) -> list[JsonObject]:
    return [{"name": name, "replicas": size} for name, size in sizes.items()]


def task(name: str, **more: Any) -> JsonObject:
    held = {"suppressDeletion": True, "purgeMode": "Gracefully"}
    return {"fromCluster": name, "reason": "Test", "producer": "alert-reactor", **held, **more}


def test_a_full_policy_gets_the_new_cluster_in_the_place_of_the_one_that_leaves() -> None:
    after = moved(BindingPlacement(clusters(m2=2), []), {"m1": 2}, [task("m2")], Limits(1, each=2))
    assert after.clusters == clusters(m1=2)
    assert [(one["fromCluster"], one["replicas"], one["clustersBeforeFailover"]) for one in after.tasks] == [
        ("m2", 2, ["m2"])
    ]


def test_what_another_writer_has_placed_comes_before_what_is_new() -> None:
    after = moved(BindingPlacement(clusters(m2=2, m9=2), []), {"m1": 2}, [task("m2")], Limits(1, each=2))
    assert after.clusters == clusters(m9=2)


def test_nothing_is_written_while_the_scheduler_would_have_to_choose() -> None:
    now = BindingPlacement(clusters(m1=2, m2=2, m3=2), [])
    with pytest.raises(Declined, match="allows 1"):
        moved(now, {"m3": 2}, [task("m1")], Limits(1, each=2))
    assert moved(now, {}, [], Limits(1, each=2)) == now


def test_divided_replicas_add_up_whatever_another_writer_has_changed_meanwhile() -> None:
    asked = {"m2": 3, "m3": 2}
    for has, expected in (({"m2": 2}, {"m2": 3, "m3": 2}), ({"m2": 4}, {"m2": 4, "m3": 1}), ({"m2": 5}, {"m2": 5})):
        after = moved(BindingPlacement(clusters(m1=2, **has), []), asked, [task("m1")], Limits(total=5))
        assert after.clusters == clusters(**expected)


def test_kinds_without_replicas_get_none() -> None:
    assert moved(BindingPlacement([], []), {"m1": 1}, [], Limits()).clusters == [{"name": "m1"}]


def test_a_purge_ends_the_task_however_it_was_held() -> None:
    tasks = [task("m1"), task("m2", gracePeriodSeconds=9), task("m3")]
    assert purged(BindingPlacement([], tasks), "m1", []).tasks == tasks[1:]
    assert purged(BindingPlacement([], tasks), "m2", []).tasks == [tasks[0], tasks[2]]
    assert purged(BindingPlacement(clusters(m1=2), tasks), "m1", []).clusters == clusters(m1=2), (
        "somebody wants it there"
    )


def test_the_last_healthy_copy_is_not_purged() -> None:
    now = BindingPlacement(clusters(m2=2), [task("m1")])
    with pytest.raises(Declined, match="no other one"):
        purged(now, "m1", ["m1"])
    assert purged(now, "m1", ["m1", "m2"]).tasks == []


@pytest.mark.parametrize(
    ("healthy", "becomes"),
    [(["m1"], ["m1"]), (["m2"], ["m2"]), (["m1", "m2"], ["m2"])],
    ids=["the old one", "the new one", "both"],
)
def test_with_room_for_one_the_healthy_copy_wins(healthy: list[str], becomes: list[str]) -> None:
    now = BindingPlacement(clusters(m2=2), [task("m1", replicas=2, clustersBeforeFailover=["m1"])])
    after = cancelled(now, "m1", Limits(1, each=2), healthy)
    assert ([one["name"] for one in after.clusters], after.tasks) == (becomes, [])


def test_while_none_is_healthy_none_wins() -> None:
    with pytest.raises(Declined, match="Healthy yet"):
        cancelled(BindingPlacement(clusters(m2=2), [task("m1", replicas=2)]), "m1", Limits(1, each=2), [])


def test_what_was_there_before_makes_no_room() -> None:
    now = BindingPlacement(clusters(m2=2, m3=2), [task("m1", replicas=2, clustersBeforeFailover=["m1", "m2"])])
    after = cancelled(now, "m1", Limits(2, each=2), ["m1"])
    assert after.clusters == clusters(m2=2, m1=2), "m3 is new and not Healthy"


def _binding(spec: JsonObject, now: BindingPlacement) -> JsonObject:
    return {"spec": {**spec, "clusters": now.clusters, "gracefulEvictionTasks": now.tasks}}


def _scheduled(spec: JsonObject, now: BindingPlacement) -> BindingPlacement:
    """Placement after the scheduler has answered."""
    members = [{"metadata": {"name": name}, "spec": {}} for name in NAMES]
    for _ in range(2):
        body = _binding(spec, now)["spec"]
        if not must_schedule(body):
            return now
        try:
            now = BindingPlacement(clusters(**spread(body, members)), now.tasks)
        except Unschedulable:
            return now
    return now


def _there(now: BindingPlacement) -> set[str]:
    return {one["name"] for one in now.clusters} | {one["fromCluster"] for one in now.tasks}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[JsonObject, BindingPlacement, set[str]]:
    """A policy, a placement that its scheduler has made, and which copies are healthy."""
    most = draw(st.sampled_from([None, 1, 2, 3]))
    kind = draw(st.sampled_from(["Duplicated", "Aggregated", "Weighted"]))
    scheduling: JsonObject = {"replicaSchedulingType": "Duplicated"}
    if kind != "Duplicated":
        scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": kind}
        weights = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5), min_size=1))
        listed = [{"targetCluster": {"clusterNames": [name]}, "weight": count} for name, count in weights.items()]
        if kind == "Weighted":
            scheduling["weightPreference"] = {"staticWeightList": listed}
    constraints = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": most}] if most else []
    spec: JsonObject = {
        "replicas": draw(st.integers(1, 7)),
        "placement": {"replicaScheduling": scheduling, "spreadConstraints": constraints},
    }
    start = draw(st.dictionaries(st.sampled_from(NAMES), st.just(spec["replicas"]), min_size=1, max_size=most or 5))
    now = _scheduled(spec, BindingPlacement(clusters(**start), []))
    return spec, now, draw(st.sets(st.sampled_from(sorted(_there(now))), min_size=1))


@many(100)
@given(worlds(), st.data())
def test_no_write_of_ours_lets_the_scheduler_remove_the_last_healthy_copy(
    world: tuple[JsonObject, BindingPlacement, set[str]], data: st.DataObject
) -> None:
    """Through a move, its cancelling and its purge, each answered by the scheduler, and a change by another writer."""
    spec, now, healthy = world
    limits = limits_of(_binding(spec, now))
    leaving = data.draw(st.sets(st.sampled_from(sorted(_there(now))), min_size=1, max_size=2))
    plan = data.draw(st.dictionaries(st.sampled_from(sorted({*NAMES} - leaving)), st.integers(1, spec["replicas"])))
    for step in data.draw(st.lists(st.sampled_from(["move", "cancel", "purge", "somebody", "healthy"]), max_size=6)):
        alive = healthy & _there(now)
        try:
            if step == "move":
                now = moved(now, plan, [task(name) for name in sorted(leaving)], limits)
                assert moved(now, plan, [task(name) for name in sorted(leaving)], limits) == now, "twice is as once"
            elif step == "cancel":
                now = cancelled(now, min(leaving), limits, alive)
                assert cancelled(now, min(leaving), limits, alive) == now
            elif step == "purge":
                now = purged(now, min(leaving), alive)
            elif step == "somebody":
                free = data.draw(st.sampled_from(NAMES))
                now = _scheduled(spec, BindingPlacement(clusters(**{free: spec["replicas"]}), now.tasks))
                continue
            else:
                healthy = {*healthy, *(one["name"] for one in now.clusters)}
                continue
        except Declined:
            continue
        now = _scheduled(spec, now)
        assert not alive or alive & _there(now), f"{step} let the last healthy copy go: {alive}, {now}"


@given(worlds())
def test_a_rehearsal_reads_the_limits_of_a_policy_as_the_carrier_does(
    world: tuple[JsonObject, BindingPlacement, set[str]],
) -> None:
    spec, now, _ = world
    policy = Policy.model_validate({"placement": spec["placement"]}, strict=False)
    assert rehearsed_limits(policy, spec["replicas"]) == limits_of(_binding(spec, now))
