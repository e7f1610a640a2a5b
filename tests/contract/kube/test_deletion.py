"""Deletion: preconditions, finalizers, and everything of a kind."""

from __future__ import annotations

from tests.contract.kube.objects import config_map
from tests.kube.api import Api


async def test_a_deleted_object_is_gone(kube: Api) -> None:
    made = await kube.post(kube.path("configmaps"), config_map("a"))
    done = await kube.delete(kube.path("configmaps", "a"))
    assert (done.code, done.body["status"]) == (200, "Success")
    assert done.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.body["metadata"]["uid"]}
    assert (await kube.delete(kube.path("configmaps", "a"))).code == 404


async def test_a_deletion_of_another_object_of_that_name_conflicts(kube: Api) -> None:
    first = await kube.post(kube.path("configmaps"), config_map("a"))
    await kube.delete(kube.path("configmaps", "a"))
    second = await kube.post(kube.path("configmaps"), config_map("a"))
    for precondition in ({"uid": first.body["metadata"]["uid"]}, {"resourceVersion": first.version}):
        refused = await kube.delete(kube.path("configmaps", "a"), {"preconditions": precondition})
        assert (refused.code, refused.body["reason"]) == (409, "Conflict")
        assert "in the precondition" in refused.body["message"]
        assert refused.body["details"] == {"name": "a", "kind": "ConfigMap"}
    right = {"uid": second.body["metadata"]["uid"], "resourceVersion": second.version}
    assert (await kube.delete(kube.path("configmaps", "a"), {"preconditions": right})).code == 200


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(kube: Api) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    made = await kube.post(kube.path("configmaps"), body)
    held = await kube.delete(kube.path("configmaps", "a"))
    assert held.code == 200
    marked = await kube.get(kube.path("configmaps", "a"))
    assert marked.body["metadata"]["deletionTimestamp"]
    async with kube.watch(kube.path("configmaps"), resourceVersion=made.version) as events:
        await kube.patch(kube.path("configmaps", "a"), {"metadata": {"finalizers": None}})
        assert (await events.until("DELETED"))["object"]["metadata"]["name"] == "a"
    assert (await kube.get(kube.path("configmaps", "a"))).code == 404


async def test_everything_that_a_selector_chooses_is_deleted(kube: Api) -> None:
    for name, color in (("a", "red"), ("b", "red"), ("c", "blue")):
        await kube.post(kube.path("configmaps"), config_map(name, {"color": color, "mine": "yes"}))
    assert (await kube.delete(kube.path("configmaps"), labelSelector="color=red")).code == 200
    left = await kube.get(kube.path("configmaps"), labelSelector="mine")
    assert [one["metadata"]["name"] for one in left.body["items"]] == ["c"]
