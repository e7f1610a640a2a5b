"""The write log: what really happened, in order, with its writer, whatever response the writer got."""

from __future__ import annotations

from reactor.demo.kube import WORLD, EmulatedCluster, Emulator
from tests.contract.kube.objects import config_map, pod
from tests.kube.api import JSON_PATCH, Api


async def test_a_write_says_who_changed_what_from_which_version_to_which(east: EmulatedCluster, api: Api) -> None:
    made = await api.post(api.path("configmaps"), config_map("a", color="red"))
    operations = [{"op": "replace", "path": "/data/color", "value": "blue"}]
    done = await api.patch(api.path("configmaps", "a"), operations, JSON_PATCH, fieldManager="alert-reactor")
    write = list(east.log)[-1]
    assert (write.cluster, write.verb, write.group, write.resource) == ("east", "patch", "", "configmaps")
    assert (write.namespace, write.name, write.manager) == ("shop", "a", "alert-reactor")
    assert (write.patch_type, write.body) == (JSON_PATCH, operations)
    assert (write.before, write.after) == (made.version, done.version)
    assert (write.effective, write.code) == (True, 200)


async def test_no_ops_dry_runs_and_refusals_are_written_down_as_without_effect(east: EmulatedCluster, api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.post(api.path("configmaps"), config_map("a", color="red"))
    east.log.clear()
    await api.patch(path, {"data": {"color": "red"}})
    await api.patch(path, {"data": {"color": "blue"}}, dryRun="All")
    await api.post(api.path("configmaps"), config_map("a"))
    await api.patch(path, [{"op": "test", "path": "/data/color", "value": "blue"}], JSON_PATCH)
    await api.delete(path, {"preconditions": {"uid": "somebody else"}})
    assert [(write.code, write.effective) for write in east.log] == [
        (200, False), (200, False), (409, False), (422, False), (409, False),
    ]  # fmt: skip
    assert east.log.effective() == []


async def test_writes_of_all_clusters_are_in_one_order(sim: Emulator, east: EmulatedCluster) -> None:
    west = sim.cluster("west")
    for cluster in (east, west, east):
        cluster.apply(config_map("a", by=str(cluster.resource_version)))
    writes = sim.writes.effective("configmaps")
    assert [write.cluster for write in writes] == ["east", "west", "east"]
    assert [write.sequence for write in writes] == sorted(write.sequence for write in writes)
    assert [write.at for write in writes] == sorted(write.at for write in writes)
    assert len(sim.writes.effective("configmaps", cluster="east", manager=WORLD)) == 2


async def test_an_eviction_is_a_write_to_its_subresource(east: EmulatedCluster, api: Api) -> None:
    east.create(pod("web-0") | {"metadata": {"name": "web-0", "namespace": "shop"}})
    await api.post(api.path("pods", "web-0", subresource="eviction"), {"kind": "Eviction"})
    write = list(east.log)[-1]
    assert (write.verb, write.resource, write.subresource, write.name) == ("create", "pods", "eviction", "web-0")
    assert (write.effective, write.code) == (True, 201)


async def test_deleting_everything_writes_down_each(east: EmulatedCluster, api: Api) -> None:
    for name in "ab":
        await api.post(api.path("configmaps"), config_map(name))
    east.log.clear()
    await api.delete(api.path("configmaps"))
    assert [(write.verb, write.name) for write in east.log.effective()] == [("delete", "a"), ("delete", "b")]
