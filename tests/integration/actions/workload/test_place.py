"""Placing: what arrives, what is left alone, and what is said when something is in the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube import Delay, EmulatedCluster, Fault, Forbid, Hang, LoseAnswer, Reset, StatusError, StatusFault
from tests.integration.actions.workload.conftest import Scene
from tests.unit.actions.workload.builders import DECIDED, NEEDY, NGINX, deployment, evict, needed, place

ALL = {
    "ConfigMap/settings", "Secret/key", "ServiceAccount/web", "PersistentVolumeClaim/data", "Deployment/nginx"
}  # fmt: skip


@pytest.fixture
async def member1(scene: Scene) -> EmulatedCluster:
    """The source: a Deployment and all that it needs."""
    source = scene.members["member1"]
    for obj in (*needed(), deployment(spec=NEEDY)):
        source.create(obj)
    return source


def nginx(scene: Scene, cluster: str) -> JsonObject:
    return scene.members[cluster].get("deployments", "nginx", "shop")


async def test_a_workload_arrives_with_all_that_it_needs(scene: Scene, member1: EmulatedCluster) -> None:
    outcome = await scene.do(place({"member2": 5}, "member1"))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert scene.present("member2") == ALL
    arrived = nginx(scene, "member2")
    assert arrived["spec"]["replicas"] == 5
    assert arrived["spec"]["template"] == nginx(scene, "member1")["spec"]["template"]
    assert scene.members["member2"].get("secrets", "key", "shop")["data"] == {"k": "c2VjcmV0"}
    claim = scene.members["member2"].get("persistentvolumeclaims", "data", "shop")
    assert "volumeName" not in claim["spec"]
    assert "secrets" not in scene.members["member2"].get("serviceaccounts", "web", "shop")


async def test_the_workload_comes_last(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1"))
    assert [write.resource for write in scene.writes()][-1] == "deployments"


async def test_copies_say_which_decision_put_them_there(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1"))
    notes = nginx(scene, "member2")["metadata"]["annotations"]
    assert notes["reactor/decision"] == "nginx/shop/Deployment/nginx/1"
    assert notes["reactor/epoch"] == "1"


async def test_a_new_copy_says_for_which_ones_it_was_made(scene: Scene, member1: EmulatedCluster) -> None:
    """Also when a later placement brings it up to date; a copy that was there says nothing of the kind."""
    await scene.do(place({"member2": 1}, "member1", leaving=("member1",)))
    assert nginx(scene, "member2")["metadata"]["annotations"]["reactor/placed-for"] == "member1"
    await scene.do(place({"member1": 2, "member2": 3}, "member1", generation=2))
    assert nginx(scene, "member2")["metadata"]["annotations"]["reactor/placed-for"] == "member1"
    assert "reactor/placed-for" not in nginx(scene, "member1")["metadata"]["annotations"]


async def test_again_writes_nothing(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 2, "member3": 2}, "member1"))
    before = len(scene.writes())
    for generation in (1, 2):  # the same decision, and a newer one that asks for the same
        outcome = await scene.do(place({"member2": 2, "member3": 2}, "member1", generation=generation))
        assert (outcome.status, outcome.wrote) == ("Done", False)
    assert len(scene.writes()) == before


async def test_what_was_taken_over_goes_back_in_one_write_and_nothing_else_is_touched(
    scene: Scene, member1: EmulatedCluster
) -> None:
    """The copy whose cluster is back stays as it is; the one that took its replicas over shrinks."""
    await scene.do(place({"member2": 5}, "member1"))
    home, before = nginx(scene, "member1"), len(scene.writes())
    back = place({"member1": 3, "member2": 2}, "member2", "member1", generation=2)
    outcome = await scene.do(back.model_copy(update={"leaving": ()}))
    assert (outcome.status, outcome.wrote) == ("Done", True), outcome.detail
    assert nginx(scene, "member2")["spec"]["replicas"] == 2
    assert nginx(scene, "member1") == home
    assert [(write.cluster, write.resource) for write in scene.writes()[before:]] == [("member2", "deployments")]


async def test_dependencies_stay_where_they_are_not_asked_for(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1", propagate_deps=False))
    assert scene.present("member2") == {"Deployment/nginx"}


async def test_a_copy_of_another_owner_is_only_scaled(scene: Scene, member1: EmulatedCluster) -> None:
    theirs = deployment(replicas=1)
    theirs["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.invalid/web:theirs"
    scene.members["member2"].create(theirs)
    await scene.do(place({"member2": 4}, "member1", propagate_deps=False))
    found = nginx(scene, "member2")
    assert found["spec"]["replicas"] == 4
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.invalid/web:theirs"
    await scene.do(place({"member2": 5}, "member1", propagate_deps=False, generation=2))
    assert nginx(scene, "member2")["spec"]["template"] == found["spec"]["template"]


async def test_a_dependency_of_another_owner_is_left_as_it_is(scene: Scene, member1: EmulatedCluster) -> None:
    theirs: dict[str, Any] = {**needed()[0], "data": {"color": "blue"}}
    scene.members["member2"].create(theirs)
    assert (await scene.do(place({"member2": 1}, "member1"))).status == "Done"
    assert scene.members["member2"].get("configmaps", "settings", "shop")["data"] == {"color": "blue"}


async def test_our_own_copy_follows_a_new_version_of_the_source(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 2}, "member1"))
    image = [{"name": "web", "image": "registry.invalid/web:2"}]
    member1.patch("deployments", "nginx", {"spec": {"template": {"spec": {"containers": image}}}}, "shop")
    scene.members["member2"].patch("deployments", "nginx", {"spec": {"paused": True}}, "shop")
    outcome = await scene.do(place({"member2": 2}, "member1", generation=2))
    found = nginx(scene, "member2")
    assert (outcome.wrote, found["spec"]["template"]["spec"]["containers"][0]["image"]) == (True, image[0]["image"])
    assert found["spec"]["paused"] is True, "a field of somebody else"


async def test_a_copy_that_was_leaving_stays_when_it_is_placed_again(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 2}, "member1"))
    await scene.do(evict("member2", generation=2))
    assert "reactor/evicting" in nginx(scene, "member2")["metadata"]["annotations"]
    await scene.do(place({"member2": 2}, "member1", generation=3))
    assert "reactor/evicting" not in nginx(scene, "member2")["metadata"]["annotations"]


async def test_labels_that_carry_state_reach_the_new_copy_and_stay_on_it(
    scene: Scene, member1: EmulatedCluster
) -> None:
    await scene.do(place({"member2": 2}, "member1", labels={"failover/job-id": "7"}))
    member1.patch("deployments", "nginx", {"spec": {"minReadySeconds": 9}}, "shop")
    await scene.do(place({"member2": 2}, "member1", generation=2))
    found = nginx(scene, "member2")
    assert (found["metadata"]["labels"]["failover/job-id"], found["spec"]["minReadySeconds"]) == ("7", 9)


# Sources.


async def test_a_dead_source_is_skipped_for_the_next(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1"))
    member1.faults.add(Fault(Hang()))
    outcome = await scene.do(place({"member3": 1}, "member1", "member2", generation=2))
    assert (outcome.status, scene.present("member3")) == ("Done", ALL)


async def test_a_remembered_copy_takes_the_place_of_a_dead_source(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1"))
    for name in ("member1", "member2"):
        scene.members[name].faults.add(Fault(Reset()))
    scene.members["member3"].create(needed()[1])  # a Secret is never remembered, so the target has to have it
    outcome = await scene.do(place({"member3": 2}, "member1", "member2", generation=2))
    assert (outcome.status, scene.present("member3")) == ("Done", ALL)


async def test_secrets_are_not_remembered(scene: Scene, member1: EmulatedCluster) -> None:
    await scene.do(place({"member2": 1}, "member1"))
    assert {ref.kind for ref in scene.templates.copies} == {
        "ConfigMap", "Deployment", "PersistentVolumeClaim", "ServiceAccount"
    }  # fmt: skip
    member1.faults.add(Fault(Reset()))
    outcome = await scene.do(place({"member3": 1}, "member1", generation=2))
    assert (outcome.status, outcome.reason) == ("Failed", "SourceUnreachable")
    assert "Secret/key" in outcome.detail
    assert "wrote ConfigMap/settings" in outcome.detail


async def test_nothing_to_copy_from_is_said(scene: Scene) -> None:
    outcome = await scene.do(place({"member2": 1}, "member1", "member3"))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "NotInSource", False)
    assert "shop/Deployment/nginx" in outcome.detail


async def test_a_secret_that_may_not_be_read_is_named(scene: Scene, member1: EmulatedCluster) -> None:
    member1.faults.add(Fault(Forbid(), resource="secrets"))
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "Forbidden")
    assert "secrets/key" in outcome.detail
    assert "Deployment/nginx" not in scene.present("member2")


async def test_an_object_that_only_the_source_understands_is_said_to_stay(
    scene: Scene, member1: EmulatedCluster
) -> None:
    member1.delete("secrets", "key", "shop")
    member1.create({**needed()[1], "type": "kubernetes.io/service-account-token"})
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert outcome.reason == "StaysBehind"


async def test_what_is_missing_and_optional_keeps_nothing_back(scene: Scene) -> None:
    ref = {"configMapRef": {"name": "extra", "optional": True}}
    spec = {"containers": [{"name": "web", "image": "registry.invalid/web:1", "envFrom": [ref]}]}
    scene.members["member1"].create(deployment(spec=spec))
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, scene.present("member2")) == ("Done", {"Deployment/nginx"})


# Targets that refuse.


async def test_a_missing_namespace_is_said_and_nothing_is_written(scene: Scene, member1: EmulatedCluster) -> None:
    scene.members["member2"].delete("namespaces", "shop")
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "NamespaceMissing", False)
    assert "member2" in outcome.detail


async def test_a_missing_namespace_is_made_where_that_is_allowed(scene: Scene, member1: EmulatedCluster) -> None:
    scene.members["member2"].delete("namespaces", "shop")
    scene.world = type(scene.world)(
        scene.world.clock, scene.world.clusters, {}, scene.world.http, create_namespaces=True
    )
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, scene.present("member2")) == ("Done", ALL)


def refuse(monkeypatch: pytest.MonkeyPatch, kind: str, words: str, code: int = 403) -> None:
    """Let an admission plugin of every cluster refuse new objects of a kind, in its own words."""
    from reactor.demo.kube import writes

    real = writes.insert

    def insert(cluster: EmulatedCluster, call: Any, new: Any, **more: Any) -> Any:
        if call.resource.kind == kind and call.manager == "alert-reactor":
            raise StatusError(code, "Forbidden", f'{call.resource.qualified} "{call.name}" is forbidden: {words}')
        return real(cluster, call, new, **more)

    monkeypatch.setattr("reactor.demo.kube.patching.insert", insert)


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ("exceeded quota: limits, requested: count/deployments.apps=1, used: 5, limited: 5", 403, "QuotaExceeded"),
        ('admission webhook "policy.invalid" denied the request: no', 403, "AdmissionDenied"),
        ('admission webhook "policy.invalid" denied the request: no', 400, "AdmissionDenied"),
        ("unable to create new content in namespace shop because it is being terminated", 403, "NamespaceTerminating"),
    ],
)
async def test_a_refusal_has_its_own_word_and_names_what_was_written_before(
    scene: Scene, member1: EmulatedCluster, monkeypatch: pytest.MonkeyPatch, words: str, code: int, reason: str
) -> None:
    refuse(monkeypatch, "Deployment", words, code)
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", reason, True)
    assert "wrote ConfigMap/settings, PersistentVolumeClaim/data, Secret/key, ServiceAccount/web" in outcome.detail
    assert "nginx" in outcome.detail
    assert "grant the verb" not in outcome.detail
    again = await scene.do(place({"member2": 1}, "member1"))
    assert (again.wrote, again.detail) == (False, outcome.detail), "what stands half-moved is told with every try"


async def test_one_cluster_that_refuses_keeps_no_other_from_its_copy(scene: Scene, member1: EmulatedCluster) -> None:
    scene.members["member2"].faults.add(Fault(Forbid(), verb="patch", resource="deployments"))
    outcome = await scene.do(place({"member2": 1, "member3": 1}, "member1"))
    assert (outcome.status, outcome.reason, scene.present("member3")) == ("Failed", "Forbidden", ALL)
    assert "'patch'" in outcome.detail


async def test_a_target_that_does_not_answer_is_unreachable(
    scene: Scene, member1: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.actions.workload.place.SETTLE_SECONDS", 15.0)  # the other has to be done within it
    scene.members["member2"].faults.add(Fault(Hang()))
    outcome = await scene.do(place({"member2": 1, "member3": 1}, "member1"))
    assert (outcome.status, outcome.reason, scene.present("member3")) == ("Failed", "ClusterUnreachable", ALL)


async def test_a_cluster_that_the_settings_do_not_name_is_reported(scene: Scene, member1: EmulatedCluster) -> None:
    outcome = await scene.do(place({"mars": 1}, "member1"))
    assert (outcome.status, outcome.reason) == ("Failed", "UnknownCluster")


async def test_an_object_that_the_target_finds_invalid_is_not_tried_again(
    scene: Scene, member1: EmulatedCluster
) -> None:
    refused = scene.members["member2"].faults.add(Fault(StatusFault(422), verb="patch", resource="deployments"))
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.reason, refused.hits) == ("Invalid", 1)


async def test_a_kind_that_the_target_does_not_serve_is_said(scene: Scene) -> None:
    ref = NGINX.model_copy(update={"kind": "HTTPRoute", "api_version": "gateway.networking.k8s.io/v1", "name": "r"})
    route = {
        "apiVersion": ref.api_version, "kind": "HTTPRoute", "metadata": {"name": "r", "namespace": "shop"},
        "spec": {"rules": [{"backendRefs": [{"name": "web", "port": 80}]}]},
    }  # fmt: skip
    scene.members["member1"].create(route)
    scene.members["member2"].delete("customresourcedefinitions", "httproutes.gateway.networking.k8s.io")
    outcome = await scene.do(place({"member2": 0, "member3": 0}, "member1", workload=ref))
    assert (outcome.status, outcome.reason) == ("Failed", "KindMissing")
    assert scene.members["member3"].get("httproutes", "r", "shop")["spec"]["rules"]


# Races and crashes.


@pytest.mark.parametrize("effect", [StatusFault(409), StatusFault(503), Reset()])
@pytest.mark.parametrize("resource", ["configmaps", "deployments"])
async def test_trouble_that_passes_is_waited_for(
    scene: Scene, member1: EmulatedCluster, effect: StatusFault | Reset, resource: str
) -> None:
    scene.members["member2"].faults.add(Fault(effect, verb="patch", resource=resource, count=2))
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, len(scene.writes())) == ("Done", len(ALL))


@pytest.mark.parametrize("resource", ["configmaps", "deployments"])
async def test_a_lost_answer_is_no_second_write_and_still_counts_as_ours(
    scene: Scene, member1: EmulatedCluster, resource: str
) -> None:
    scene.members["member2"].faults.add(Fault(LoseAnswer(), verb="patch", resource=resource, count=1))
    outcome = await scene.do(place({"member2": 1}, "member1"))
    assert (outcome.status, outcome.wrote, len(scene.writes())) == ("Done", True, len(ALL))


@pytest.mark.parametrize("after", range(len(ALL)))
async def test_a_process_that_died_between_two_writes_is_finished_by_the_next(
    scene: Scene, member1: EmulatedCluster, after: int
) -> None:
    """Every write after the first `after` fails as for a process that is no more; the next one starts again."""
    target = scene.members["member2"]
    order = ["configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "deployments"]
    fault = target.faults.add(Fault(Forbid(), verb="patch", resource=order[after]))
    await scene.do(place({"member2": 1}, "member1"))
    assert len(scene.writes()) == after
    fault.remove()
    assert (await scene.do(place({"member2": 1}, "member1"))).status == "Done"
    assert (len(scene.writes()), scene.present("member2")) == (len(ALL), ALL)


async def test_a_write_that_arrives_after_its_process_was_killed_is_no_second_one(
    scene: Scene, member1: EmulatedCluster
) -> None:
    late = scene.members["member2"].faults.add(Fault(Delay(0.3), verb="patch", resource="deployments", count=1))
    killed = asyncio.create_task(scene.do(place({"member2": 1}, "member1")))
    while not late.hits:
        await asyncio.sleep(0.01)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    assert (await scene.do(place({"member2": 1}, "member1"))).status == "Done"
    await asyncio.sleep(0.5)
    assert (len(scene.writes()), scene.present("member2")) == (len(ALL), ALL)


async def test_two_processes_with_the_same_action_write_once(scene: Scene, member1: EmulatedCluster) -> None:
    action = place({"member2": 1, "member3": 2}, "member1")
    outcomes = await asyncio.gather(scene.do(action), scene.do(action))
    assert [outcome.status for outcome in outcomes] == ["Done", "Done"]
    assert len(scene.writes()) == 2 * len(ALL)


async def test_a_late_placement_does_not_undo_a_newer_one(scene: Scene, member1: EmulatedCluster) -> None:
    late = place({"member2": 1}, "member1", generation=1, decided_at=DECIDED.replace(year=2099))
    await scene.do(place({"member2": 5}, "member1", generation=2))
    outcome = await scene.do(late)
    assert (outcome.status, outcome.reason, nginx(scene, "member2")["spec"]["replicas"]) == ("Refused", "Stale", 5)


async def test_a_group_that_counts_from_the_start_after_its_store_was_lost_is_not_refused(
    scene: Scene, member1: EmulatedCluster
) -> None:
    await scene.do(place({"member2": 5}, "member1", generation=57))
    outcome = await scene.do(place({"member2": 1}, "member1", generation=1, decided_at=DECIDED.replace(year=2101)))
    assert (outcome.status, nginx(scene, "member2")["spec"]["replicas"]) == ("Done", 1)


async def test_a_dry_run_writes_nothing(scene: Scene, member1: EmulatedCluster) -> None:
    outcome = await scene.do(place({"member2": 1}, "member1", mode="DryRun"))
    assert (outcome.status, outcome.reason, scene.writes()) == ("Refused", "DryRun", [])


async def test_a_copy_that_is_being_deleted_is_not_taken_for_one_that_stays(
    scene: Scene, member1: EmulatedCluster
) -> None:
    leaving = deployment()
    leaving["metadata"]["finalizers"] = ["shop/hold"]
    scene.members["member2"].create(leaving)
    scene.members["member2"].delete("deployments", "nginx", "shop")
    outcome = await scene.do(place({"member2": 1}, "member1", propagate_deps=False))
    assert (outcome.status, outcome.reason) == ("Failed", "CopyTerminating")
    assert "shop/hold" in outcome.detail
