"""Actions on bindings: one conditional write each, in the words that the control plane takes."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Eviction
from reactor.demo.kube import Fault, Forbid, Hang, LoseAnswer, StatusFault
from tests.integration.actions.karmada.conftest import Plane, binding
from tests.unit.actions.workload.builders import DECIDED, NGINX
from tests.unit.actions.workload.builders import cancel as cancel_
from tests.unit.actions.workload.builders import evict as evict_
from tests.unit.actions.workload.builders import place as place_
from tests.unit.actions.workload.builders import purge as purge_


def place(clusters: dict[str, int], **more: Any) -> Any:
    return place_(clusters, carrier="Karmada", **more)


def evict(cluster: str, mode: str = "Gracefully", **more: Any) -> Any:
    return evict_(cluster, mode, carrier="Karmada", **more)


def purge(cluster: str, **more: Any) -> Any:
    return purge_(cluster, carrier="Karmada", **more)


def cancel(cluster: str, **more: Any) -> Any:
    return cancel_(cluster, carrier="Karmada", **more)


async def test_an_eviction_is_one_write_of_both_lists(plane: Plane) -> None:
    plane.karmada.create(binding())
    outcome = await plane.do(evict("member1", grace_period_seconds=100, on_grace_expired="Purge"))
    assert (outcome.status, outcome.wrote, len(plane.writes())) == ("Done", True, 1)
    assert plane.clusters() == {"member2": 2}
    [task] = plane.tasks()
    assert task == {
        "fromCluster": "member1", "replicas": 3, "reason": "ClusterUnhealthy", "producer": "alert-reactor",
        "message": task["message"], "purgeMode": "Gracefully", "suppressDeletion": True,
        "creationTimestamp": "2100-01-01T00:00:00Z", "clustersBeforeFailover": ["member1", "member2"],
    }  # fmt: skip


async def test_every_action_twice_is_one_write(plane: Plane) -> None:
    plane.karmada.create(binding())
    sick = Eviction.model_validate({"from": "member1", "purgeMode": "Gracefully"})
    moves = place({"member2": 2, "member3": 3}, leaving=("member1",), evictions=(sick,))
    actions = [moves, purge("member1"), evict("member2", "Never"), cancel("member2")]
    for number, action in enumerate(actions, 1):
        made = action.model_copy(update={"generation": number})
        first, again = await plane.do(made), await plane.do(made)
        assert (first.wrote, again.wrote, again.status) == (True, False, "Done"), action
    assert len(plane.writes()) == len(actions)


async def test_a_task_that_is_there_is_not_replaced(plane: Plane) -> None:
    theirs = {"fromCluster": "member1", "reason": "TaintUntolerated", "producer": "TaintManager"}
    plane.karmada.create(binding(gracefulEvictionTasks=[theirs]))
    await plane.do(evict("member1"))
    assert (plane.clusters(), plane.tasks()) == ({"member2": 2}, [theirs])


async def test_a_placement_is_one_write_with_the_evictions_that_follow_it(plane: Plane) -> None:
    plane.karmada.create(binding())
    eviction = Eviction.model_validate({"from": "member1", "purgeMode": "Gracefully"})
    outcome = await plane.do(place({"member2": 3, "member3": 2}, leaving=("member1",), evictions=(eviction,)))
    assert (outcome.status, outcome.reason, len(plane.writes())) == ("Done", None, 1)
    assert plane.clusters() == {"member2": 3, "member3": 2}
    assert [one["fromCluster"] for one in plane.tasks()] == ["member1"]
    outcome = await plane.do(evict("member1", clusters={"member2": 3, "member3": 2}))
    assert (outcome.status, outcome.reason, outcome.wrote, len(plane.writes())) == ("Done", None, False, 1)


async def test_a_placement_leaves_alone_what_it_does_not_name(plane: Plane) -> None:
    plane.karmada.create(binding())
    outcome = await plane.do(place({"member3": 3}))
    assert plane.clusters() == {"member1": 3, "member2": 2}
    assert (outcome.status, outcome.reason) == ("Done", "PlacedElsewhere")


async def test_a_cancelled_eviction_puts_the_cluster_back_in_its_size(plane: Plane) -> None:
    plane.karmada.create(binding())
    await plane.do(evict("member1"))
    await plane.do(cancel("member1", generation=2))
    assert (plane.clusters(), plane.tasks()) == ({"member2": 2, "member1": 3}, [])


@pytest.mark.parametrize("mode", ["Gracefully", "Never"])
async def test_a_copy_that_must_not_go_by_time_is_held_until_our_purge(plane: Plane, mode: str) -> None:
    plane.karmada.create(binding())
    await plane.do(evict("member1", mode, grace_period_seconds=100 if mode == "Gracefully" else None))
    (task,) = plane.tasks()
    assert (task["suppressDeletion"], "gracePeriodSeconds" in task) == (True, False)
    await plane.do(purge("member1", generation=2))
    assert (plane.tasks(), plane.clusters()) == ([], {"member2": 2})


async def test_state_goes_into_the_task_where_the_control_plane_takes_it(plane: Plane) -> None:
    plane.karmada.create(binding())
    outcome = await plane.do(evict("member1", "Directly", preserved={"flink/job-id": "7"}))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    (task,) = plane.tasks()
    assert task["preservedLabelState"] == {"flink/job-id": "7"}
    assert task["clustersBeforeFailover"] == ["member1", "member2"]


async def test_an_old_control_plane_is_spoken_to_in_its_words(plane: Plane, which: str) -> None:
    name = "resourcebindings.work.karmada.io"
    definition = plane.karmada.get("customresourcedefinitions", name)
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        if task := spec.get("gracefulEvictionTasks"):
            task["items"]["properties"]["purgeMode"]["enum"] = ["Immediately", "Graciously", "Never"]
    plain = {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "spec": definition["spec"]}
    plane.karmada.install({**plain, "metadata": {"name": name}})
    plane.karmada.create(binding())
    assert (await plane.do(evict("member1"))).status == "Done"
    assert plane.tasks()[0]["purgeMode"] == "Graciously"


async def test_a_definition_that_may_not_be_read_is_taken_for_todays(plane: Plane) -> None:
    plane.karmada.create(binding())
    plane.karmada.faults.add(Fault(Forbid(), resource="customresourcedefinitions"))
    assert (await plane.do(evict("member1"))).status == "Done"
    assert plane.tasks()[0]["purgeMode"] == "Gracefully"


async def test_a_workload_of_the_whole_cluster_has_a_binding_of_its_own(plane: Plane) -> None:
    ref = NGINX.model_copy(update={"namespace": "", "kind": "ClusterRole", "name": "view", "api_version": "v1"})
    obj = binding(resource={"apiVersion": "v1", "kind": "ClusterRole", "name": "view"})
    del obj["spec"]["replicas"]
    obj |= {"kind": "ClusterResourceBinding", "metadata": {"name": "view-clusterrole"}}
    plane.karmada.create(obj)
    assert (await plane.do(evict("member1", workload=ref))).status == "Done"
    assert (await plane.do(place({"member4": 0}, workload=ref, generation=2))).status == "Done"
    spec = plane.karmada.get("clusterresourcebindings", "view-clusterrole")["spec"]
    assert [one["name"] for one in spec["clusters"]] == ["member2", "member4"]


async def test_a_binding_of_another_name_is_found_by_what_it_is_about(plane: Plane) -> None:
    plane.karmada.create({**binding(), "metadata": {"name": "nginx-7c9f", "namespace": "shop"}})
    plane.karmada.create(binding(resource={"apiVersion": "v1", "kind": "Deployment", "namespace": "shop", "name": "x"}))
    await plane.do(evict("member1"))
    found = plane.karmada.get("resourcebindings", "nginx-7c9f", "shop")
    assert [task["fromCluster"] for task in found["spec"]["gracefulEvictionTasks"]] == ["member1"]


async def test_a_workload_without_a_binding_is_said(plane: Plane) -> None:
    outcome = await plane.do(evict("member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "BindingMissing")


@pytest.mark.parametrize("effect", [StatusFault(409), StatusFault(503), LoseAnswer()])
async def test_trouble_that_passes_is_waited_for(plane: Plane, effect: Any) -> None:
    plane.karmada.create(binding())
    plane.karmada.faults.add(Fault(effect, verb="patch", count=1))
    outcome = await plane.do(evict("member1"))
    assert (outcome.status, outcome.wrote, len(plane.writes())) == ("Done", True, 1)


async def test_a_control_plane_that_does_not_answer_is_unreachable(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.actions.conditional_write.SETTLE_SECONDS", 0.3)
    plane.karmada.create(binding())
    plane.karmada.faults.add(Fault(Hang(), resource="resourcebindings"))
    outcome = await plane.do(evict("member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "ClusterUnreachable")


async def test_a_late_eviction_does_not_undo_a_newer_placement(plane: Plane) -> None:
    plane.karmada.create(binding())
    plane.karmada.patch("resourcebindings", "nginx-deployment", {"spec": {"replicas": 6}}, "shop")
    await plane.do(place({"member1": 4}, generation=5))
    outcome = await plane.do(evict("member1", decided_at=DECIDED.replace(year=2099)))
    assert (outcome.status, outcome.reason, plane.clusters()["member1"]) == ("Refused", "Stale", 4)
