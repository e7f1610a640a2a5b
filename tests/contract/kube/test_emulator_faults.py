"""Faults on order: what a client may have to live through, and that it ends when the fault is removed."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from reactor.demo.kube import (
    CutWatch,
    Delay,
    EmulatedCluster,
    EndWatch,
    FailWatch,
    Fault,
    Forbid,
    Hang,
    Html,
    LoseAnswer,
    Reset,
    Stale,
    StatusFault,
    TruncateWatch,
)
from tests.contract.kube.objects import config_map, pod
from tests.kube.api import Api

BROKEN = (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)


async def test_an_answer_on_order_carries_its_retry_after_and_changes_nothing(east: EmulatedCluster, api: Api) -> None:
    handle = east.faults.add(Fault(StatusFault(429, retry_after=7), verb="create"))
    refused = await api.post(api.path("configmaps"), config_map("a"))
    assert (refused.code, refused.headers["Retry-After"]) == (429, "7")
    assert (refused.body["reason"], refused.body["details"]["retryAfterSeconds"]) == ("TooManyRequests", 7)
    handle.remove()
    assert handle.hits == 1
    assert (await api.post(api.path("configmaps"), config_map("a"))).code == 201


async def test_a_fault_befalls_only_the_calls_it_names_and_only_so_often(east: EmulatedCluster, api: Api) -> None:
    for name in "ab":
        east.create(config_map(name) | {"metadata": {"name": name, "namespace": "shop"}})
    east.faults.add(Fault(StatusFault(503), verb="get", resource="configmaps", namespace="shop", name="a", count=2))
    a, b = api.path("configmaps", "a"), api.path("configmaps", "b")
    codes = [(await api.get(path)).code for path in (b, a, a, a)]
    assert codes == [200, 503, 503, 200]


async def test_a_resource_does_not_include_its_subresources(east: EmulatedCluster, api: Api) -> None:
    east.create(pod("web-0") | {"metadata": {"name": "web-0", "namespace": "shop"}})
    east.faults.add(Fault(StatusFault(500), resource="pods/eviction"))
    assert (await api.get(api.path("pods", "web-0"))).code == 200
    assert (await api.post(api.path("pods", "web-0", subresource="eviction"), {})).code == 500


async def test_an_api_server_that_is_down_is_down_for_discovery_too(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(StatusFault(503)))
    for path in ("/version", "/readyz", "/apis", api.path("pods")):
        assert (await api.get(path)).code == 503


async def test_a_proxy_answers_in_html(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(Html(502)))
    answer = await api.get(api.path("configmaps"))
    assert answer.code == 502
    assert answer.body.startswith("<html>")


async def test_missing_permissions_are_said_in_rbacs_words(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(Forbid(), verb="patch", resource="configmaps"))
    refused = await api.patch(api.path("configmaps", "a"), {})
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert 'cannot patch resource "configmaps" in API group "" in the namespace "shop"' in refused.body["message"]
    assert (await api.get(api.path("configmaps"))).code == 200


async def test_who_asks_first_is_told_the_same(east: EmulatedCluster, api: Api) -> None:
    handle = east.faults.add(Fault(Forbid(), verb="create", resource="pods/eviction", namespace="shop", count=1))
    attributes = {"verb": "create", "resource": "pods", "subresource": "eviction", "namespace": "shop"}
    body = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await api.post(path, body)).body["status"]["allowed"] is False
    assert handle.hits == 0
    handle.remove()
    assert (await api.post(path, body)).body["status"]["allowed"] is True


async def test_a_hanging_server_never_answers_and_never_acts(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(Hang(), verb="write"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await api.post(api.path("configmaps"), config_map("a"))
    assert east.find("configmaps", "a", "shop") is None


async def test_a_slow_write_is_carried_out_although_its_client_has_left(east: EmulatedCluster, api: Api) -> None:
    async with api.watch(api.path("configmaps"), resourceVersion=east.resource_version) as events:
        fault = east.faults.add(Fault(Delay(1), verb="create"))
        client = asyncio.create_task(api.post(api.path("configmaps"), config_map("a")))
        while not fault.hits:
            await asyncio.sleep(0.01)
        client.cancel()
        await asyncio.wait([client])
        assert east.find("configmaps", "a", "shop") is None
        assert (await events.until("ADDED"))["object"]["metadata"]["name"] == "a"


async def test_a_late_answer_comes_after_the_write(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(Delay(30, answered_late=True), verb="create"))
    async with api.watch(api.path("configmaps"), resourceVersion=east.resource_version) as events:
        waiting = asyncio.create_task(api.post(api.path("configmaps"), config_map("a")))
        assert (await events.until("ADDED"))["object"]["metadata"]["name"] == "a"
        assert not waiting.done()
        waiting.cancel()


async def test_a_lost_answer_hides_a_write_that_happened(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(LoseAnswer(), verb="create", count=1))
    with pytest.raises(BROKEN):
        await api.post(api.path("configmaps"), config_map("a"))
    assert east.find("configmaps", "a", "shop") is not None
    assert [(write.code, write.effective) for write in east.log if write.name == "a"] == [(201, True)]


async def test_a_reset_keeps_the_write_from_happening(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(Reset(), verb="create", count=1))
    with pytest.raises(BROKEN):
        await api.post(api.path("configmaps"), config_map("a"))
    assert east.find("configmaps", "a", "shop") is None


async def test_stale_reads_show_the_past_until_the_fault_ends(east: EmulatedCluster, api: Api) -> None:
    made = await api.post(api.path("configmaps"), config_map("a", color="red"))
    handle = east.faults.add(Fault(Stale(int(made.version)), resource="configmaps"))
    await api.patch(api.path("configmaps", "a"), {"data": {"color": "blue"}})
    await api.post(api.path("configmaps"), config_map("b"))
    assert (await api.get(api.path("configmaps", "a"))).body["data"] == {"color": "red"}
    listed = await api.get(api.path("configmaps"))
    assert [one["metadata"]["name"] for one in listed.body["items"]] == ["a"]
    assert listed.version == made.version
    handle.remove()
    assert (await api.get(api.path("configmaps", "a"))).body["data"] == {"color": "blue"}


async def test_watches_are_cut_in_the_middle(east: EmulatedCluster, api: Api) -> None:
    async with api.watch(api.path("configmaps"), allowWatchBookmarks="true") as events:
        await events.until("BOOKMARK")
        assert east.cut_watches() == 1
        with pytest.raises(BROKEN):
            await events.rest()


async def test_a_watch_can_end_at_once_with_nothing(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(EndWatch(), resource="leases"))
    async with api.watch(api.path("leases", group="coordination.k8s.io/v1")) as events:
        assert await events.next() is None


async def test_a_running_watch_is_told_that_history_is_gone(east: EmulatedCluster, api: Api) -> None:
    async with api.watch(api.path("configmaps"), allowWatchBookmarks="true") as events:
        await events.until("BOOKMARK")
        assert east.cut_watches(FailWatch(410), resource="configmaps") == 1
        assert (await events.until("ERROR"))["object"]["reason"] == "Expired"


async def test_a_watch_breaks_off_in_the_middle_of_a_line(east: EmulatedCluster, api: Api) -> None:
    async with api.watch(api.path("configmaps"), allowWatchBookmarks="true") as events:
        await events.until("BOOKMARK")
        east.cut_watches(TruncateWatch())
        with pytest.raises((json.JSONDecodeError, *BROKEN)):
            await events.rest()


async def test_a_watch_can_be_reset_as_it_begins(east: EmulatedCluster, api: Api) -> None:
    east.faults.add(Fault(CutWatch(), count=1))
    with pytest.raises(BROKEN):
        async with api.watch(api.path("configmaps")) as events:
            await events.rest()


async def test_a_client_that_missed_changes_is_told_so_after_compaction(east: EmulatedCluster, api: Api) -> None:
    seen = (await api.get(api.path("configmaps"))).version
    await api.post(api.path("configmaps"), config_map("a"))
    east.compact()
    async with api.watch(api.path("configmaps"), resourceVersion=seen) as events:
        assert (await events.next())["object"]["code"] == 410
    now = (await api.get(api.path("configmaps"))).version
    async with api.watch(api.path("configmaps"), resourceVersion=now, allowWatchBookmarks="true") as events:
        assert (await events.next())["type"] == "BOOKMARK"


async def test_old_history_falls_out_of_the_window(api: Api) -> None:
    sim = api.server.sim
    assert sim is not None
    small = sim.cluster("small", history=3)
    first = small.create(config_map("a"))
    for number in range(5):
        small.patch("configmaps", "a", {"data": {"n": str(number)}}, "default")
    collection = small.store.collection(small.catalog.named("configmaps"))
    assert len(collection.history) == 3
    async with aiohttp.ClientSession() as session:
        far = Api(session, type(api.server)("sim", sim.url("small")), "default")
        version = first["metadata"]["resourceVersion"]
        async with far.watch(far.path("configmaps"), resourceVersion=version) as events:
            assert (await events.next())["object"]["code"] == 410
        exact = await far.get(far.path("configmaps"), resourceVersion=version, resourceVersionMatch="Exact")
        assert (exact.code, exact.body["reason"]) == (410, "Expired")


async def test_a_client_from_the_future_is_not_given_an_older_answer(east: EmulatedCluster, api: Api) -> None:
    refused = await api.get(api.path("configmaps"), resourceVersion=east.resource_version + 1_000)
    assert (refused.code, refused.body["reason"], refused.headers["Retry-After"]) == (504, "Timeout", "1")
