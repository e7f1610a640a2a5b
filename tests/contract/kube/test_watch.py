"""Watches: every change once, in order, as the selectors see it."""

from __future__ import annotations

import pytest

from tests.contract.kube.objects import Widgets, config_map
from tests.kube.api import Api

WATCH_LIST_SINCE = 34  # Kubernetes 1.34


async def _version(kube: Api) -> str:
    return (await kube.get(kube.path("configmaps"))).version


async def test_a_watch_goes_on_where_the_list_ended(kube: Api) -> None:
    start = await _version(kube)
    path = kube.path("configmaps", "a")
    await kube.post(kube.path("configmaps"), config_map("a", {"mine": "yes"}, color="red"))
    await kube.patch(path, {"data": {"color": "blue"}})
    async with kube.watch(kube.path("configmaps"), resourceVersion=start, labelSelector="mine") as events:
        added, modified = await events.next(), await events.next()
        assert (added["type"], added["object"]["data"]) == ("ADDED", {"color": "red"})
        assert (modified["type"], modified["object"]["data"]) == ("MODIFIED", {"color": "blue"})
        deleted = await kube.delete(path)
        gone = await events.next()
    assert deleted.code == 200
    assert gone["type"] == "DELETED"
    assert gone["object"]["data"] == {"color": "blue"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (added, modified, gone)]
    assert versions == sorted(set(versions))


async def test_a_watch_from_nowhere_begins_with_what_is_there(kube: Api) -> None:
    for name in ("a", "b"):
        await kube.post(kube.path("configmaps"), config_map(name, {"mine": "yes"}))
    async with kube.watch(kube.path("configmaps"), labelSelector="mine", timeoutSeconds=1) as events:
        seen = await events.rest()
    assert sorted((one["type"], one["object"]["metadata"]["name"]) for one in seen) == [("ADDED", "a"), ("ADDED", "b")]


async def test_an_object_that_leaves_the_selector_is_seen_as_deleted(kube: Api) -> None:
    start = await _version(kube)
    path = kube.path("configmaps", "a")
    async with kube.watch(kube.path("configmaps"), resourceVersion=start, labelSelector="tier=front") as events:
        await kube.post(kube.path("configmaps"), config_map("a", {"tier": "back"}))
        entered = await kube.patch(path, {"metadata": {"labels": {"tier": "front"}}})
        seen = await events.next()
        assert (seen["type"], seen["object"]["metadata"]["labels"]) == ("ADDED", {"tier": "front"})
        assert seen["object"]["metadata"]["resourceVersion"] == entered.version
        left = await kube.patch(path, {"metadata": {"labels": {"tier": "back"}}, "data": {"color": "red"}})
        seen = await events.next()
    # What is sent is the last object the watcher knew, under the version of the change that took it away.
    assert seen["type"] == "DELETED"
    assert seen["object"]["metadata"]["labels"] == {"tier": "front"}
    assert seen["object"]["metadata"]["resourceVersion"] == left.version


async def test_a_change_outside_the_selector_is_not_seen(kube: Api) -> None:
    start = await _version(kube)
    query = {"resourceVersion": start, "fieldSelector": "metadata.name=b"}
    async with kube.watch(kube.path("configmaps"), **query) as events:
        await kube.post(kube.path("configmaps"), config_map("a"))
        await kube.post(kube.path("configmaps"), config_map("b"))
        assert (await events.next())["object"]["metadata"]["name"] == "b"


async def test_a_watch_ends_when_its_time_is_up(kube: Api) -> None:
    start = await _version(kube)
    async with kube.watch(kube.path("leases", group="coordination.k8s.io/v1"), resourceVersion=start,
                          timeoutSeconds=1) as events:  # fmt: skip
        assert await events.rest() == []


async def test_a_streamed_list_ends_with_an_annotated_bookmark(kube: Api) -> None:
    minor = int((await kube.get("/version")).body["minor"].rstrip("+"))
    if minor < WATCH_LIST_SINCE:
        pytest.skip(f"streamed lists are on by default since 1.{WATCH_LIST_SINCE}, and this is 1.{minor}")
    await kube.post(kube.path("configmaps"), config_map("a", {"mine": "yes"}))
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan",
             "labelSelector": "mine"}  # fmt: skip
    async with kube.watch(kube.path("configmaps"), **query) as events:
        added, bookmark = await events.next(), await events.next()
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(added["object"]["metadata"]["resourceVersion"])


async def test_a_watch_from_a_forgotten_version_is_told_to_start_again(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a"))
    if kube.server.sim is not None:
        kube.server.sim.cluster("main").compact()
    # What a real server remembers of a kind begins with the kind, and version 1 was before this one.
    async with kube.watch(widgets.path(), resourceVersion="1") as events:
        told = await events.next()
        assert told["type"] == "ERROR"
        assert (told["object"]["code"], told["object"]["reason"]) == (410, "Expired")
        assert await events.next() is None


async def test_one_object_can_be_watched_by_its_name(kube: Api) -> None:
    made = await kube.post(kube.path("configmaps"), config_map("a", color="red"))
    await kube.post(kube.path("configmaps"), config_map("b"))
    query = {"resourceVersion": made.version, "fieldSelector": "metadata.name=a"}
    async with kube.watch(kube.path("configmaps"), **query) as events:
        await kube.patch(kube.path("configmaps", "a"), {"data": {"color": "blue"}})
        assert (await events.next())["object"]["data"] == {"color": "blue"}
