"""Lists: selectors, pages, and the resource version that a watch goes on from."""

from __future__ import annotations

import pytest

from tests.contract.kube.objects import config_map, pod
from tests.kube.api import Api, Reply


def _names(reply: Reply) -> list[str]:
    return [one["metadata"]["name"] for one in reply.body["items"]]


async def _make(kube: Api, *names: str) -> None:
    for name in names:
        assert (await kube.post(kube.path("configmaps"), config_map(name, {"batch": "mine", "name": name}))).code == 201


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=web", ["a", "b"]),
        ("app==web,tier=front", ["a"]),
        ("app!=web", ["c", "d"]),
        ("app in (web, db)", ["a", "b", "c"]),
        ("app notin (web)", ["c", "d"]),
        ("tier", ["a"]),
        ("!app", ["d"]),
        ("mine,!tier", ["b", "c", "d"]),
    ],
)
async def test_label_selectors_choose(kube: Api, selector: str, names: list[str]) -> None:
    labels = {"a": {"app": "web", "tier": "front"}, "b": {"app": "web"}, "c": {"app": "db"}, "d": {}}
    for name, more in labels.items():
        await kube.post(kube.path("configmaps"), config_map(name, {"mine": "yes", **more}))
    chosen = await kube.get(kube.path("configmaps"), labelSelector=f"mine,{selector}")
    assert _names(chosen) == names


async def test_field_selectors_choose(kube: Api) -> None:
    await _make(kube, "a", "b")
    assert _names(await kube.get(kube.path("configmaps"), fieldSelector="metadata.name=b")) == ["b"]
    await kube.post(kube.path("pods"), pod("p"))
    assert _names(await kube.get(kube.path("pods"), fieldSelector="status.phase=Pending,spec.nodeName=")) == ["p"]
    assert _names(await kube.get(kube.path("pods"), fieldSelector="status.phase!=Pending")) == []


async def test_a_selector_that_cannot_be_parsed_is_a_bad_request(kube: Api) -> None:
    assert (await kube.get(kube.path("configmaps"), labelSelector="a in")).code == 400
    refused = await kube.get(kube.path("configmaps"), fieldSelector="data.color=red")
    assert refused.code == 400
    assert "data.color" in refused.body["message"]


async def test_a_list_comes_in_pages_of_one_moment(kube: Api) -> None:
    await _make(kube, *"abcde")
    query = {"labelSelector": "batch=mine", "limit": 2}
    first = await kube.get(kube.path("configmaps"), **query)
    assert _names(first) == ["a", "b"]
    await kube.delete(kube.path("configmaps", "c"))
    await _make(kube, "aa", "f")
    more = first.body["metadata"]["continue"]
    second = await kube.get(kube.path("configmaps"), **query, **{"continue": more})
    third = await kube.get(kube.path("configmaps"), **query, **{"continue": second.body["metadata"]["continue"]})
    assert _names(second) + _names(third) == ["c", "d", "e"]
    assert not third.body["metadata"].get("continue")
    assert first.version == second.version == third.version


async def test_a_list_without_selectors_says_how_many_remain(kube: Api) -> None:
    before = len((await kube.get(kube.path("secrets"))).body["items"])
    for name in "abc":
        await kube.post(kube.path("secrets"), {"metadata": {"name": name}, "stringData": {"word": "sesame"}})
    page = await kube.get(kube.path("secrets"), limit=1)
    assert page.body["metadata"]["remainingItemCount"] == before + 2


async def test_an_exact_list_is_of_the_past(kube: Api) -> None:
    await _make(kube, "a")
    then = await kube.get(kube.path("configmaps"), labelSelector="batch=mine")
    await _make(kube, "b")
    query = {"resourceVersion": then.version, "resourceVersionMatch": "Exact", "labelSelector": "batch=mine"}
    assert _names(await kube.get(kube.path("configmaps"), **query)) == ["a"]


async def test_a_broken_continue_token_is_a_bad_request(kube: Api) -> None:
    assert (await kube.get(kube.path("configmaps"), **{"limit": 1, "continue": "nonsense"})).code == 400


async def test_a_list_of_all_namespaces_names_each_objects_own(kube: Api) -> None:
    await _make(kube, "a")
    everywhere = await kube.get("/api/v1/configmaps", labelSelector="batch=mine")
    places = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in everywhere.body["items"]}
    assert (kube.namespace, "a") in places
    assert everywhere.body["kind"] == "ConfigMapList"
