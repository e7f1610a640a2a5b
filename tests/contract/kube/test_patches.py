"""The four kinds of patch, as a server carries them out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kube.objects import Widgets, config_map, deployment
from tests.kube.api import JSON_PATCH, MERGE_PATCH, STRATEGIC, Api


async def test_a_merge_patch_sets_removes_and_replaces_lists(kube: Api, widgets: Widgets) -> None:
    backends = [{"service": "a", "weight": 100}, {"service": "b", "weight": 0}]
    await kube.post(widgets.path(), widgets.widget("a", size=1, note="old", backends=backends))
    patch = {"spec": {"size": 2, "note": None, "backends": [{"service": "b", "weight": 100}]}}
    done = await kube.patch(widgets.path("a"), patch)
    assert done.code == 200
    assert done.body["spec"] == {"size": 2, "color": "red", "backends": [{"service": "b", "weight": 100}]}


async def test_a_merge_patch_on_old_news_conflicts(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    await kube.patch(kube.path("configmaps", "a"), {"data": {"color": "green"}})
    guarded = {"metadata": {"resourceVersion": first.version}, "data": {"color": "blue"}}
    late = await kube.patch(kube.path("configmaps", "a"), guarded)
    assert (late.code, late.body["reason"]) == (409, "Conflict")


async def test_a_patch_that_changes_nothing_keeps_the_resource_version(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    again = await kube.patch(kube.path("configmaps", "a"), {"data": {"color": "red"}})
    assert again.code == 200
    assert again.version == first.version


@pytest.mark.parametrize(
    ("operations", "backends"),
    [
        ([{"op": "add", "path": "/spec/backends/-", "value": {"service": "c"}}], "a b c"),
        ([{"op": "add", "path": "/spec/backends/1", "value": {"service": "c"}}], "a c b"),
        ([{"op": "remove", "path": "/spec/backends/0"}], "b"),
        ([{"op": "replace", "path": "/spec/backends/0/service", "value": "z"}], "z b"),
        ([{"op": "move", "from": "/spec/backends/0", "path": "/spec/backends/1"}], "b a"),
        ([{"op": "copy", "from": "/spec/backends/0", "path": "/spec/backends/-"}], "a b a"),
        ([{"op": "test", "path": "/spec/backends/0/weight", "value": 100},
          {"op": "replace", "path": "/spec/backends/0/service", "value": "z"}], "z b"),
    ],
)  # fmt: skip
async def test_a_json_patch_knows_six_operations(kube: Api, widgets: Widgets, operations: Any, backends: str) -> None:
    start = [{"service": "a", "weight": 100}, {"service": "b", "weight": 0}]
    await kube.post(widgets.path(), widgets.widget("a", size=1, backends=start))
    done = await kube.patch(widgets.path("a"), operations, JSON_PATCH)
    assert done.code == 200, done.body
    assert [one["service"] for one in done.body["spec"]["backends"]] == backends.split()


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/color", "value": "blue"},
        {"op": "test", "path": "/data/color"},
        {"op": "test", "path": "/nowhere/at", "value": None},
        {"op": "remove", "path": "/data/nothing"},
        {"op": "replace", "path": "/nowhere/at", "value": "x"},
        {"op": "add", "path": "/nowhere/at/all", "value": "x"},
        {"op": "copy", "from": "/nowhere/at", "path": "/data/else"},
        {"op": "move", "from": "/data/nothing", "path": "/data/else"},
        {"op": "bogus", "path": "/data/color"},
    ],
)
async def test_a_json_patch_is_carried_out_as_a_whole_or_not_at_all(kube: Api, operation: Any) -> None:
    await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    operations = [{"op": "add", "path": "/data/size", "value": "big"}, operation]
    refused = await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH)
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert (await kube.get(kube.path("configmaps", "a"))).body["data"] == {"color": "red"}


async def test_a_field_that_is_missing_is_null_to_a_json_patch(kube: Api) -> None:
    """So a `replace` is no proof that a field was there: only a `test` of what was read is."""
    await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    operations = [
        {"op": "test", "path": "/data/size", "value": None},
        {"op": "replace", "path": "/data/size", "value": "big"},
        {"op": "copy", "from": "/data/nothing", "path": "/immutable"},
    ]
    done = await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH)
    assert (done.code, done.body["data"]) == (200, {"color": "red", "size": "big"})


async def test_a_json_patch_tests_numbers_as_they_are_written(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    for written, code in ((1, 200), (1.0, 422), (True, 422), ("1", 422)):
        operations = [{"op": "test", "path": "/spec/size", "value": written}]
        assert (await kube.patch(widgets.path("a"), operations, JSON_PATCH)).code == code, written


async def test_a_patch_that_cannot_be_carried_out_does_not_say_why(kube: Api) -> None:
    """Therefore the reactor takes each such answer for a change since it has read the object."""
    await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    for operation in ({"op": "test", "path": "/data/color", "value": "blue"}, {"op": "remove", "path": "/data/none"}):
        refused = await kube.patch(kube.path("configmaps", "a"), [operation], JSON_PATCH)
        assert refused.body["message"] == "the server rejected our request due to an error in our request"
        assert not refused.body.get("details")


async def test_a_json_patch_reaches_names_with_slashes_and_tildes(kube: Api) -> None:
    await kube.post(kube.path("configmaps"), config_map("a"))
    operations = [
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/reactor~1decision", "value": "r/g/1"},
    ]
    done = await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH)
    assert done.body["metadata"]["annotations"] == {"reactor/decision": "r/g/1"}


async def test_a_json_patch_can_test_the_resource_version(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": first.version},
        {"op": "replace", "path": "/data/color", "value": "green"},
    ]
    assert (await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH)).code == 200
    assert (await kube.patch(kube.path("configmaps", "a"), operations, JSON_PATCH)).code == 422


async def test_a_strategic_patch_merges_containers_by_name(kube: Api) -> None:
    await kube.post(kube.path("deployments", group="apps/v1"), deployment("web", image="registry.invalid/web:1"))
    containers = [{"name": "web", "image": "registry.invalid/web:2"}, {"name": "side", "image": "registry.invalid/s:1"}]
    patch: Any = {"spec": {"template": {"spec": {"containers": containers}}}}
    path = kube.path("deployments", "web", "apps/v1")
    done = await kube.patch(path, patch, STRATEGIC)
    images = {one["name"]: one["image"] for one in done.body["spec"]["template"]["spec"]["containers"]}
    assert images == {"web": "registry.invalid/web:2", "side": "registry.invalid/s:1"}
    patch["spec"]["template"]["spec"]["containers"] = [{"name": "side", "$patch": "delete"}]
    done = await kube.patch(path, patch, STRATEGIC)
    assert [one["name"] for one in done.body["spec"]["template"]["spec"]["containers"]] == ["web"]


async def test_a_custom_resource_takes_no_strategic_patch(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    refused = await kube.patch(widgets.path("a"), {"spec": {"size": 2}}, STRATEGIC)
    assert (refused.code, refused.body["reason"]) == (415, "UnsupportedMediaType")
    assert MERGE_PATCH in refused.body["message"]


async def test_a_patch_of_nothing_is_not_found(kube: Api) -> None:
    assert (await kube.patch(kube.path("configmaps", "nobody"), {"data": {}})).code == 404


async def test_a_patch_cannot_rename_or_move_an_object(kube: Api) -> None:
    await kube.post(kube.path("configmaps"), config_map("a"))
    for metadata in ({"name": "b"}, {"namespace": "default"}):
        refused = await kube.patch(kube.path("configmaps", "a"), {"metadata": metadata})
        assert refused.code in (400, 422), refused.body
