"""Leaving: marks, removals, budgets, and clusters that do not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bus.messages import Taint
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube import EmulatedCluster, Fault, Forbid, Hang, Html, LoseAnswer, Reset, StatusFault
from reactor.runtime.clock import Clock
from tests.integration.actions.workload.conftest import Scene
from tests.unit.actions.workload.builders import DECIDED, NGINX, cancel, deployment, evict, place, purge, set_taints

EVICTING = "reactor/evicting"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets are waited for a moment only."""
    monkeypatch.setattr("reactor.actions.workload.copy_pods.WAIT_SECONDS", 0.01)
    monkeypatch.setattr("reactor.actions.workload.copy_pods.BUDGET_SECONDS", 0.3)


@pytest.fixture
async def member1(scene: Scene) -> EmulatedCluster:
    """The cluster that is left: a Deployment with three pods, and a pod of the same labels that is another's."""
    cluster = scene.members["member1"]
    made = cluster.create(deployment())
    between = cluster.create(owned("ReplicaSet", "apps/v1", "nginx-1", made, {"selector": {}, "template": {}}))
    for number in range(3):
        cluster.create(pod(f"nginx-{number}", between))
    cluster.create(pod("stranger", None))
    return cluster


def owned(kind: str, version: str, name: str, owner: JsonObject | None, spec: dict[str, Any]) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "shop", "labels": {"app": "nginx"}}
    if owner is not None:
        ref = {"apiVersion": "apps/v1", "kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**ref, "uid": owner["metadata"]["uid"], "controller": True}]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def pod(name: str, owner: JsonObject | None) -> JsonObject:
    found = owned("Pod", "v1", name, owner, {"containers": [{"name": "web", "image": "registry.invalid/web:1"}]})
    ready = [{"type": "Ready", "status": "True"}]
    return {**found, "status": {"phase": "Running", "conditions": ready}}


def budget(cluster: EmulatedCluster, minimum: int, name: str = "nginx") -> None:
    spec = {"minAvailable": minimum, "selector": {"matchLabels": {"app": "nginx"}}}
    metadata = {"name": name, "namespace": "shop"}
    cluster.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
    cluster.settle_budgets("shop")


def notes(cluster: EmulatedCluster) -> dict[str, str]:
    return cluster.get("deployments", "nginx", "shop")["metadata"].get("annotations") or {}


@pytest.mark.parametrize("mode", ["Gracefully", "Never"])
async def test_a_copy_that_leaves_gracefully_is_only_marked(scene: Scene, member1: EmulatedCluster, mode: str) -> None:
    outcome = await scene.do(evict("member1", mode, because="TolerationElapsed", targets=("member2",)))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert notes(member1)[EVICTING] == "nginx/shop/Deployment/nginx/1"
    assert notes(member1)["reactor/evicting-because"] == "TolerationElapsed"
    assert notes(member1)["reactor/evicting-for"] == "member2"
    assert len(scene.writes()) == 1
    again = await scene.do(evict("member1", mode))
    assert (again.status, again.wrote, len(scene.writes())) == ("Done", False, 1)


async def test_cancelling_takes_the_mark_off_and_nothing_else(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(evict("member1"))
    outcome = await scene.do(cancel("member1", generation=2))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert [name for name in notes(member1) if name.startswith(EVICTING)] == []
    again = await scene.do(cancel("member1", generation=2))
    assert (again.status, again.wrote, len(scene.writes())) == ("Done", False, 2)


@pytest.mark.parametrize("action", [purge("member1"), evict("member1", "Directly")])
async def test_pods_leave_through_evictions_and_then_the_object_goes(
    scene: Scene, member1: EmulatedCluster, action: Any
) -> None:
    outcome = await scene.do(action)
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert scene.present("member1") == {"Pod/stranger"}
    done = [
        (write.resource, write.subresource) for write in scene.emulator.writes.effective() if write.manager != "world"
    ]
    assert done[:3] == [("pods", "eviction")] * 3
    assert done[3] == ("deployments", "")


async def test_a_purge_removes_exactly_what_was_read(scene: Scene, member1: EmulatedCluster) -> None:
    standing = member1.get("deployments", "nginx", "shop")["metadata"]
    await scene.do(purge("member1"))
    [removal] = [write for write in scene.emulator.writes.effective("deployments") if write.verb == "delete"]
    assert removal.body["preconditions"] == {"uid": standing["uid"], "resourceVersion": standing["resourceVersion"]}


@pytest.mark.parametrize("action", [purge("member1"), evict("member1"), cancel("member1")])
async def test_where_there_is_nothing_nothing_is_to_be_done(scene: Scene, action: Any) -> None:
    outcome = await scene.do(action)
    assert (outcome.status, outcome.wrote, scene.writes()) == ("Done", False, [])


@pytest.mark.parametrize("effect", [Hang(), Reset(), StatusFault(503)])
@pytest.mark.parametrize(
    "action", [purge("member1"), evict("member1"), cancel("member1"), evict("member1", "Directly")]
)
async def test_a_cluster_that_does_not_answer_keeps_the_action_owed(
    scene: Scene, member1: EmulatedCluster, monkeypatch: pytest.MonkeyPatch, effect: Any, action: Any
) -> None:
    dead = member1.faults.add(Fault(effect))
    with monkeypatch.context() as impatient:
        for module in ("reactor.actions.conditional_write", "reactor.actions.workload.purge"):
            impatient.setattr(f"{module}.SETTLE_SECONDS", 0.3)
        outcome = await scene.do(action)
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "ClusterUnreachable", False)
    dead.remove()  # it is back, and hears it then
    assert (await scene.do(action)).status == "Done"


async def test_a_budget_is_waited_for_and_then_said(scene: Scene, member1: EmulatedCluster) -> None:
    budget(member1, 3)
    outcome = await scene.do(purge("member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "DisruptionBudget")
    assert "budget shop/nginx" in outcome.detail
    assert "Deployment/nginx" in scene.present("member1")


async def test_a_purge_goes_on_where_a_budget_stopped_it(scene: Scene, member1: EmulatedCluster) -> None:
    budget(member1, 3)
    assert (await scene.do(purge("member1"))).status == "Failed"
    left = len([one for one in scene.present("member1") if one.startswith("Pod/nginx-")])
    assert left == 2, "four pods match the budget, so one may leave"
    member1.delete("poddisruptionbudgets", "nginx", "shop")
    assert (await scene.do(purge("member1"))).status == "Done"
    assert scene.present("member1") == {"Pod/stranger"}


async def test_pods_that_replace_those_that_left_go_with_the_object(scene: Scene, member1: EmulatedCluster) -> None:
    """Chasing them would never end: a controller makes a new one for each that is evicted."""
    for number in range(3):
        member1.delete("pods", f"nginx-{number}", "shop")
    await asyncio.sleep(1.1)  # an API server writes whole seconds
    decided = Clock().now()
    await asyncio.sleep(1.1)
    member1.create(pod("nginx-new", member1.get("replicasets", "nginx-1", "shop")))
    assert (await scene.do(purge("member1", decided_at=decided))).status == "Done"
    assert "Pod/nginx-new" in scene.present("member1"), "the emulator collects no garbage; a cluster would"


async def test_a_copy_that_was_made_after_the_decision_is_another_one(scene: Scene, member1: EmulatedCluster) -> None:
    outcome = await scene.do(purge("member1", decided_at=DECIDED.replace(year=2001)))
    assert (outcome.status, outcome.reason, len(scene.writes())) == ("Refused", "Stale", 0)


async def test_budgets_that_overlap_are_reported_at_once(scene: Scene, member1: EmulatedCluster) -> None:
    budget(member1, 1)
    budget(member1, 1, "second")
    outcome = await scene.do(purge("member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "EvictionRefused")
    assert "Deployment/nginx" in scene.present("member1")


async def test_finalizers_that_hold_the_copy_are_named(scene: Scene, member1: EmulatedCluster) -> None:
    member1.patch("deployments", "nginx", {"metadata": {"finalizers": ["shop/hold"]}}, "shop")
    for _ in range(2):
        outcome = await scene.do(purge("member1"))
        assert (outcome.status, outcome.reason) == ("Failed", "Terminating")
        assert "shop/hold" in outcome.detail
    deletes = [write for write in scene.emulator.writes.effective("deployments") if write.verb == "delete"]
    assert len(deletes) == 1
    member1.patch("deployments", "nginx", {"metadata": {"finalizers": None}}, "shop")
    assert (await scene.do(purge("member1"))).status == "Done"


async def test_a_copy_that_changes_all_the_time_is_removed_all_the_same(scene: Scene, member1: EmulatedCluster) -> None:
    member1.faults.add(Fault(StatusFault(409), verb="delete", resource="deployments", count=2))
    assert (await scene.do(purge("member1"))).status == "Done"
    assert "Deployment/nginx" not in scene.present("member1")


async def test_a_lost_answer_to_a_removal_is_no_second_one(scene: Scene, member1: EmulatedCluster) -> None:
    member1.faults.add(Fault(LoseAnswer(), verb="delete", resource="deployments", count=1))
    assert (await scene.do(purge("member1"))).status == "Done"
    deletes = [write for write in scene.emulator.writes.effective() if write.verb == "delete"]
    assert len(deletes) == 1


async def test_what_may_not_be_done_says_what_to_grant(scene: Scene, member1: EmulatedCluster) -> None:
    member1.faults.add(Fault(Forbid(), verb="create", resource="pods/eviction"))
    outcome = await scene.do(purge("member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "Forbidden")
    assert "'pods/eviction'" in outcome.detail


async def test_a_cluster_that_answers_evictions_with_an_error_does_not_count_as_away(
    scene: Scene, member1: EmulatedCluster
) -> None:
    """A purge waits for a cluster that is away until it is Healthy. This one shows the copy: it is tried again."""
    failing = member1.faults.add(Fault(StatusFault(500), verb="create", resource="pods/eviction"))
    outcome = await scene.do(purge("member1"))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "EvictionRefused", False)
    assert "was answered 500" in outcome.detail
    failing.remove()
    assert (await scene.do(purge("member1"))).status == "Done"


async def test_a_late_purge_does_not_remove_a_copy_that_was_placed_since(
    scene: Scene, member1: EmulatedCluster
) -> None:
    scene.members["member2"].create(deployment())
    late = purge("member1", decided_at=DECIDED.replace(year=2099))
    assert (await scene.do(place({"member1": 9}, "member2", generation=2))).status == "Done"
    outcome = await scene.do(late)
    assert (outcome.status, outcome.reason) == ("Refused", "Stale")
    assert "Deployment/nginx" in scene.present("member1")


async def test_a_workload_without_pods_is_just_removed(scene: Scene) -> None:
    ref = NGINX.model_copy(update={"kind": "ConfigMap", "api_version": "v1", "name": "settings"})
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    scene.members["member1"].create(config)
    assert (await scene.do(purge("member1", workload=ref))).status == "Done"
    assert scene.present("member1") == set()


async def test_a_dry_run_removes_nothing(scene: Scene, member1: EmulatedCluster) -> None:
    for action in (purge("member1", mode="DryRun"), cancel("member1", mode="DryRun")):
        outcome = await scene.do(action)
        assert (outcome.status, outcome.reason) == ("Refused", "DryRun")
    assert scene.writes() == []


async def test_taints_of_plain_clusters_write_nothing_outside_the_bus(scene: Scene) -> None:
    action = set_taints("member1", Taint(key="reactor/brownout", effect="NoExecute"))
    outcome = await scene.do(action)
    assert (outcome.status, outcome.wrote) == ("Done", False)


async def test_a_copy_that_is_not_there_neither_leaves_nor_stays(scene: Scene, member1: EmulatedCluster) -> None:
    """It was removed while nothing watched it: its rule has to know."""
    member1.delete("deployments", "nginx", "shop")
    before = len(scene.writes())
    for action in (evict("member1"), cancel("member1")):
        outcome = await scene.do(action)
        assert (outcome.status, outcome.reason, outcome.wrote) == ("Done", "CopyGone", False)
    assert len(scene.writes()) == before


@pytest.mark.parametrize("effect", [StatusFault(404), Html(404)], ids=["kind not served", "page of a proxy"])
async def test_a_404_that_names_no_object_does_not_say_that_the_copy_is_gone(
    scene: Scene, member1: EmulatedCluster, effect: StatusFault | Html
) -> None:
    """An API server that starts, or a proxy before it, answers 404 for what is there."""
    await scene.do(evict("member1"))  # what the cluster serves is known from now on
    before = len(scene.writes())
    fault = member1.faults.add(Fault(effect, resource="deployments"))
    for action in (evict("member1", generation=2), cancel("member1", generation=3), purge("member1", generation=4)):
        outcome = await scene.do(action)
        assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "KindMissing", False)
    fault.remove()
    assert len(scene.writes()) == before
    assert "Deployment/nginx" in scene.present("member1")
