"""Create, read, update: what every client relies on."""

from __future__ import annotations

import pytest

from tests.contract.kube.objects import Widgets, config_map, deployment, pod
from tests.kube.api import JSON_PATCH, Api


async def test_a_server_says_its_version_and_health(kube: Api) -> None:
    version = await kube.get("/version")
    assert version.code == 200
    assert {"major", "minor", "gitVersion"} <= version.body.keys()
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await kube.get(path)).body == "ok"


async def test_discovery_lists_groups_versions_and_resources(kube: Api) -> None:
    groups = {group["name"]: group for group in (await kube.get("/apis")).body["groups"]}
    assert groups["apps"]["preferredVersion"]["groupVersion"] == "apps/v1"
    resources = {one["name"]: one for one in (await kube.get("/apis/apps/v1")).body["resources"]}
    assert resources["deployments"]["kind"] == "Deployment"
    assert resources["deployments"]["namespaced"] is True
    assert "watch" in resources["deployments"]["verbs"]
    assert resources["deployments/scale"]["kind"] == "Scale"
    core = {one["name"]: one for one in (await kube.get("/api/v1")).body["resources"]}
    assert core["pods/eviction"]["kind"] == "Eviction"
    assert core["pods/eviction"]["group"] == "policy"
    assert core["nodes"]["namespaced"] is False


async def test_a_path_that_is_nothing_is_not_found(kube: Api) -> None:
    for path in ("/apis/nobody.example.com/v1", "/api/v1/nothings", "/nowhere"):
        assert (await kube.get(path)).code == 404


async def test_a_created_object_gets_identity_and_time(kube: Api) -> None:
    made = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    assert made.code == 201
    metadata = made.body["metadata"]
    assert metadata["namespace"] == kube.namespace
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert (await kube.get(kube.path("configmaps", "a"))).body == made.body


async def test_a_name_is_taken_once(kube: Api) -> None:
    await kube.post(kube.path("configmaps"), config_map("a"))
    again = await kube.post(kube.path("configmaps"), config_map("a"))
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "a" already exists'


async def test_a_missing_object_is_named_in_the_answer(kube: Api) -> None:
    missing = await kube.get(kube.path("deployments", "nobody", "apps/v1"))
    assert (missing.code, missing.body["reason"]) == (404, "NotFound")
    assert missing.body["message"] == 'deployments.apps "nobody" not found'
    assert missing.body["details"] == {"name": "nobody", "group": "apps", "kind": "deployments"}


async def test_a_generated_name_starts_as_asked(kube: Api) -> None:
    body = config_map("")
    body["metadata"] = {"generateName": "run-"}
    first, second = [await kube.post(kube.path("configmaps"), body) for _ in range(2)]
    assert first.body["metadata"]["name"].startswith("run-")
    assert first.body["metadata"]["name"] != second.body["metadata"]["name"]


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", ""])
async def test_a_name_that_is_no_dns_name_is_invalid(kube: Api, name: str) -> None:
    refused = await kube.post(kube.path("configmaps"), config_map(name))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_nothing_is_created_in_a_namespace_that_is_not_there(kube: Api) -> None:
    refused = await kube.post("/api/v1/namespaces/nobody-made-this/configmaps", config_map("a"))
    assert (refused.code, refused.body["reason"]) == (404, "NotFound")
    assert refused.body["message"] == 'namespaces "nobody-made-this" not found'


async def test_an_object_of_another_namespace_or_kind_is_a_bad_request(kube: Api) -> None:
    elsewhere = config_map("a")
    elsewhere["metadata"]["namespace"] = "default"
    assert (await kube.post(kube.path("configmaps"), elsewhere)).code == 400
    assert (await kube.post(kube.path("configmaps"), deployment("a"))).code == 400


async def test_an_update_on_old_news_conflicts(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    mine = {**first.body, "data": {"color": "green"}}
    assert (await kube.put(kube.path("configmaps", "a"), mine)).code == 200
    late = await kube.put(kube.path("configmaps", "a"), {**first.body, "data": {"color": "blue"}})
    assert (late.code, late.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.body["message"]
    assert (await kube.get(kube.path("configmaps", "a"))).body["data"] == {"color": "green"}


async def test_an_update_that_changes_nothing_keeps_the_resource_version(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    second = await kube.put(kube.path("configmaps", "a"), first.body)
    assert second.code == 200
    assert second.version == first.version


async def test_an_update_of_a_custom_resource_needs_its_version(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    refused = await kube.put(widgets.path("a"), widgets.widget("a", size=2))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"


async def test_generation_counts_changes_of_the_spec_only(kube: Api) -> None:
    path = kube.path("deployments", "web", "apps/v1")
    made = await kube.post(kube.path("deployments", group="apps/v1"), deployment("web"))
    assert made.body["metadata"]["generation"] == 1
    labelled = await kube.patch(path, {"metadata": {"labels": {"team": "shop"}}})
    assert labelled.body["metadata"]["generation"] == 1
    scaled = await kube.patch(path, {"spec": {"replicas": 3}})
    assert scaled.body["metadata"]["generation"] == 2


async def test_status_is_written_through_its_subresource_only(kube: Api, widgets: Widgets) -> None:
    status = widgets.path("a", subresource="status")
    made = await kube.post(widgets.path(), widgets.widget("a", size=1) | {"status": {"phase": "Ready"}})
    assert "status" not in made.body
    ignored = await kube.patch(widgets.path("a"), {"status": {"phase": "Ready"}})
    assert "status" not in ignored.body
    written = await kube.patch(status, {"status": {"phase": "Ready"}, "spec": {"size": 9}})
    assert written.body["status"] == {"phase": "Ready"}
    assert written.body["spec"]["size"] == 1
    assert written.body["metadata"]["generation"] == 1
    kept = await kube.put(widgets.path("a"), {**written.body, "spec": {"size": 2}, "status": {"phase": "Other"}})
    assert (kept.body["spec"]["size"], kept.body["status"]) == (2, {"phase": "Ready"})


async def test_scale_is_another_view_of_replicas(kube: Api) -> None:
    scale = kube.path("deployments", "web", "apps/v1", subresource="scale")
    await kube.post(kube.path("deployments", group="apps/v1"), deployment("web", replicas=2))
    seen = await kube.get(scale)
    assert (seen.body["kind"], seen.body["spec"]["replicas"]) == ("Scale", 2)
    assert seen.body["status"]["selector"] == "app=web"
    assert (await kube.patch(scale, {"spec": {"replicas": 5}})).body["spec"]["replicas"] == 5
    seen.body["spec"]["replicas"] = 9
    assert (await kube.put(scale, seen.body)).code == 409
    assert (await kube.get(kube.path("deployments", "web", "apps/v1"))).body["spec"]["replicas"] == 5


async def test_a_dry_run_answers_and_changes_nothing(kube: Api) -> None:
    made = await kube.post(kube.path("configmaps"), config_map("a"), dryRun="All")
    assert made.code == 201
    assert (await kube.get(kube.path("configmaps", "a"))).code == 404
    await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    patched = await kube.patch(kube.path("configmaps", "a"), {"data": {"color": "blue"}}, dryRun="All")
    assert patched.body["data"] == {"color": "blue"}
    operations = [{"op": "replace", "path": "/data/color", "value": "green"}]
    await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH, dryRun="All")
    await kube.delete(kube.path("configmaps", "a"), dryRun="All")
    assert (await kube.get(kube.path("configmaps", "a"))).body["data"] == {"color": "red"}


async def test_a_new_pod_is_pending_whatever_its_maker_says(kube: Api) -> None:
    made = await kube.post(kube.path("pods"), pod("a") | {"status": {"phase": "Running"}})
    assert made.body["status"]["phase"] == "Pending"


async def test_an_event_is_seen_through_both_of_its_groups(kube: Api) -> None:
    about = {"kind": "Pod", "namespace": kube.namespace, "name": "web"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "FailedOver", "message": "to west",
             "type": "Normal", "source": {"component": "contract"}}  # fmt: skip
    assert (await kube.post(kube.path("events"), event)).code == 201
    seen = (await kube.get(kube.path("events", "e", "events.k8s.io/v1"))).body
    assert (seen["note"], seen["regarding"]["name"], seen["reason"]) == ("to west", "web", "FailedOver")
    found = await kube.get(kube.path("events"), fieldSelector="involvedObject.name=web,reason=FailedOver")
    assert [one["metadata"]["name"] for one in found.body["items"]] == ["e"]
