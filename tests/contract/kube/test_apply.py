"""Server-side apply: fields have owners, and owners are asked."""

from __future__ import annotations

from typing import Any

from tests.contract.kube.objects import Widgets, config_map, deployment
from tests.kube.api import Api


def _owners(body: Any) -> dict[tuple[str, str], Any]:
    return {(one["manager"], one["operation"]): one["fieldsV1"] for one in body["metadata"]["managedFields"]}


async def test_an_apply_creates_what_is_not_there(kube: Api) -> None:
    made = await kube.apply(kube.path("configmaps", "a"), config_map("a", color="red"), "one")
    assert made.code == 201
    again = await kube.apply(kube.path("configmaps", "a"), config_map("a", color="red"), "one")
    assert again.code == 200
    assert again.version == made.version


async def test_managed_fields_say_who_owns_what(kube: Api) -> None:
    made = await kube.apply(kube.path("configmaps", "a"), config_map("a", {"app": "web"}, color="red"), "one")
    entry = made.body["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"]["f:data"]["f:color"] == {}
    assert entry["fieldsV1"]["f:metadata"]["f:labels"]["f:app"] == {}


async def test_another_managers_field_is_a_conflict_that_names_it(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", color="red", size="big"), "one")
    refused = await kube.apply(path, config_map("a", color="blue"), "two")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.color'
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.color"}
    ]


async def test_force_takes_the_field_over(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", color="red", size="big"), "one")
    forced = await kube.apply(path, config_map("a", color="blue"), "two", force=True)
    assert forced.body["data"] == {"color": "blue", "size": "big"}
    owners = _owners(forced.body)
    assert "f:color" not in owners["one", "Apply"]["f:data"]
    assert "f:color" in owners["two", "Apply"]["f:data"]


async def test_two_managers_of_one_mind_share_a_field(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", color="red"), "one")
    shared = await kube.apply(path, config_map("a", color="red"), "two")
    assert shared.code == 200
    owners = _owners(shared.body)
    assert "f:color" in owners["one", "Apply"]["f:data"]
    assert "f:color" in owners["two", "Apply"]["f:data"]


async def test_a_field_its_only_owner_stops_naming_goes(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", color="red", size="big"), "one")
    await kube.apply(path, config_map("a", size="big"), "two")
    left = await kube.apply(path, config_map("a"), "one")
    assert left.body["data"] == {"size": "big"}


async def test_labels_that_are_applied_empty_are_owned_all_the_same(kube: Api) -> None:
    path, empty = kube.path("configmaps", "a"), config_map("a", color="red")
    empty["metadata"]["labels"] = {}
    made = await kube.apply(path, empty, "one")
    assert "labels" not in made.body["metadata"]
    assert _owners(made.body)["one", "Apply"]["f:metadata"] == {"f:labels": {}}
    refused = await kube.apply(path, empty, "two")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".metadata.labels"]
    assert (await kube.apply(path, config_map("a", color="red"), "two")).code == 200


async def test_an_empty_map_clears_nothing_that_others_keep_in_it(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", {"app": "web"}, color="red"), "one")
    empty = config_map("a")
    empty["metadata"]["labels"] = {}
    kept = await kube.apply(path, empty, "two")
    assert (kept.code, kept.body["data"]) == (200, {"color": "red"})
    assert kept.body["metadata"]["labels"] == {"app": "web"}


async def test_an_update_takes_the_fields_it_changes(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    await kube.apply(path, config_map("a", color="red", size="big"), "one")
    await kube.patch(path, {"data": {"color": "blue"}}, fieldManager="hand")
    owners = _owners((await kube.get(path)).body)
    assert owners["hand", "Update"]["f:data"] == {"f:color": {}}
    assert "f:color" not in owners["one", "Apply"]["f:data"]
    refused = await kube.apply(path, config_map("a", color="red", size="big"), "one")
    assert refused.code == 409
    assert 'conflict with "hand" using v1' in refused.body["message"]


async def test_list_items_with_keys_have_owners_of_their_own(kube: Api) -> None:
    path = kube.path("deployments", "web", "apps/v1")
    await kube.apply(path, deployment("web"), "one")
    side = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.invalid/side:1"}]}}},
    }
    both = await kube.apply(path, side, "two")
    assert both.code == 200, both.body
    assert [one["name"] for one in both.body["spec"]["template"]["spec"]["containers"]] == ["web", "side"]
    containers = _owners(both.body)["two", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert 'k:{"name":"side"}' in containers


async def test_an_atomic_list_has_one_owner(kube: Api, widgets: Widgets) -> None:
    first = widgets.widget("a", size=1, backends=[{"service": "a", "weight": 100}])
    second = widgets.widget("a", size=1, backends=[{"service": "b", "weight": 100}])
    await kube.apply(widgets.path("a"), first, "one")
    refused = await kube.apply(widgets.path("a"), second, "two")
    assert refused.code == 409
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".spec.backends"]
    forced = await kube.apply(widgets.path("a"), second, "two", force=True)
    assert forced.body["spec"]["backends"] == [{"service": "b", "weight": 100}]


async def test_a_keyed_list_of_a_custom_resource_merges(kube: Api, widgets: Widgets) -> None:
    await kube.apply(widgets.path("a"), widgets.widget("a", size=1, parts=[{"name": "x", "count": 1}]), "one")
    both = await kube.apply(widgets.path("a"), widgets.widget("a", size=1, parts=[{"name": "y", "count": 2}]), "two")
    assert both.body["spec"]["parts"] == [{"name": "x", "count": 1}, {"name": "y", "count": 2}]
    left = await kube.apply(widgets.path("a"), widgets.widget("a", size=1), "one")
    assert left.body["spec"]["parts"] == [{"name": "y", "count": 2}]


async def test_status_is_applied_and_owned_apart(kube: Api, widgets: Widgets) -> None:
    await kube.apply(widgets.path("a"), widgets.widget("a", size=1), "one")
    status = {**widgets.widget("a"), "status": {"phase": "Ready"}}
    del status["spec"]
    done = await kube.apply(widgets.path("a", subresource="status"), status, "two")
    assert done.body["status"] == {"phase": "Ready"}
    entry = next(one for one in done.body["metadata"]["managedFields"] if one["manager"] == "two")
    assert entry["subresource"] == "status"
    kept = await kube.apply(widgets.path("a"), widgets.widget("a", size=2), "one")
    assert kept.body["status"] == {"phase": "Ready"}


async def test_an_apply_must_say_who_applies(kube: Api) -> None:
    path = kube.path("configmaps", "a")
    anonymous = await kube.request("PATCH", path, config_map("a"), media_type="application/apply-patch+yaml")
    assert anonymous.code == 422
    assert "fieldManager: Required value" in anonymous.body["message"]
    other_name = await kube.apply(path, config_map("b"), "one")
    assert other_name.code == 400
    forced = await kube.patch(path, {"data": {}}, force=True)
    assert forced.code == 422
