"""Nodes, zones and the inventory of zones, from a cluster that has its bad days."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bus.messages import Fact, Health, MarkedNodes, ZoneInventory, Zones
from reactor.demo.kube import CutWatch, EmulatedCluster, Fault, Forbid, JsonObject, Reset, StatusFault
from reactor.sources.kubernetes import heartbeats, node_watch
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import NodeWatch
from tests.integration.sources.conftest import Heard, Running

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_watch, "LOOK_SECONDS", 0.1)


def source(**more: Any) -> NodeWatch:
    return NodeWatch(name="nodes", kind="NodeWatch", cluster="east", **more)


def node(name: str, zone: str = "a", **labels: str) -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {ZONE: zone, **labels}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        },
    }  # fmt: skip


def pod(name: str, on: str, cpu: str = "2") -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"nodeName": on, "containers": [container]}, "status": {"phase": "Running"},
    }  # fmt: skip


def slice_(service: str, *zones: str) -> JsonObject:
    labels = {"kubernetes.io/service-name": service}
    endpoints = [{"addresses": [f"10.0.0.{n}"], "zone": zone} for n, zone in enumerate(zones)]
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": endpoints,
        "metadata": {"name": service, "namespace": "shop", "labels": labels},
    }  # fmt: skip


def lease(name: str) -> JsonObject:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 1, "renewTime": "2001-01-01T00:00:00.000000Z"},
    }  # fmt: skip


def ready(east: EmulatedCluster, name: str, status: str) -> None:
    east.set_condition("nodes", name, kind="Ready", status=status)


def zones(holds: Callable[[Zones], bool]) -> Callable[[Fact], bool]:
    return lambda fact: isinstance(fact, Zones) and holds(fact)


@pytest.fixture
async def three_zones(east: EmulatedCluster) -> EmulatedCluster:
    for zone in "abc":
        for number in (1, 2):
            east.create(node(f"{zone}{number}", zone))
    return east


async def test_nodes_are_what_their_ready_condition_says_and_carry_their_zone(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    async with running(node_watch.run(source(), world)):
        said = await heard.status("node/east/a1", Health.HEALTHY)
        assert said.labels["zone"] == "a"
        ready(three_zones, "a1", "False")
        await heard.status("node/east/a1", Health.UNHEALTHY)
        ready(three_zones, "a1", "Unknown")
        await heard.status("node/east/a1", Health.UNKNOWN)
        three_zones.delete("nodes", "b1")
        said = await heard.status("node/east/b1", Health.UNKNOWN)
    assert said.detail == "the node is gone"


async def test_a_zone_is_unhealthy_once_none_of_its_few_nodes_is_ready(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    async with running(node_watch.run(source(), world)):
        await heard.status("zone/east/a", Health.HEALTHY)
        ready(three_zones, "a1", "Unknown")
        await heard.status("node/east/a1", Health.UNKNOWN)
        ready(three_zones, "a2", "Unknown")
        said = await heard.status("zone/east/a", Health.UNHEALTHY)
        assert (said.detail, said.labels) == ("0 of 2 nodes are ready", {"cluster": "east", "zone": "a"})
        ready(three_zones, "a2", "True")
        await heard.status("zone/east/a", Health.HEALTHY)
    assert heard.statuses("zone/east/b") == heard.statuses("zone/east/c") == [Health.HEALTHY]


async def test_a_zone_without_nodes_is_unknown(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    async with running(node_watch.run(source(), world)):
        await heard.status("zone/east/a", Health.HEALTHY)
        three_zones.delete("nodes", "a1")
        three_zones.delete("nodes", "a2")
        said = await heard.status("zone/east/a", Health.UNKNOWN)
        assert said.detail == "no node of it is left"
        await heard.heard(zones(lambda fact: set(fact.zones) == {"b", "c"}))


async def test_another_label_may_name_the_zone_and_excluded_nodes_do_not_count(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(node("n1", rack="r1"))
    east.create(node("n2", rack="r1", **{"node.kubernetes.io/exclude-disruption": ""}))
    ready(east, "n2", "False")
    async with running(node_watch.run(source(zone_label="rack"), world)):
        await heard.status("node/east/n2", Health.UNHEALTHY)
        await heard.status("zone/east/r1", Health.HEALTHY)
        found = await heard.heard(zones(lambda fact: bool(fact.zones)))
    assert isinstance(found, Zones)
    assert found.zones == {"r1": ZoneInventory(nodes=1, healthy_nodes=1)}


def fenced(east: EmulatedCluster, name: str, **notes: str) -> None:
    taint = {"key": "reactor/isolated-zone", "value": "use1-az6", "effect": "NoSchedule"}
    noted = {f"reactor/{key.replace('_', '-')}": value for key, value in notes.items()}
    east.patch("nodes", name, {"metadata": {"annotations": noted}, "spec": {"taints": [taint]}})


async def test_the_inventory_of_zones_says_whose_isolation_nodes_are_in(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    fenced(three_zones, "a1", isolated_by="prod-zones", isolated_by_hand="ann")
    fenced(three_zones, "a2", isolated_by="prod-zones")
    fenced(three_zones, "b1")  # by a release that did not write whose
    three_zones.patch("nodes", "b2", {"metadata": {"annotations": {"reactor/isolated-by": "prod-zones"}}})
    fenced(three_zones, "c1", isolated_by="prod-zones", isolated_in_practice="true")
    async with running(node_watch.run(source(), world)):
        await heard.heard(zones(lambda fact: {name: one.marked for name, one in fact.zones.items()} == {
            "a": MarkedNodes(rule="prod-zones", nodes=2, by="ann"), "b": None,
            "c": MarkedNodes(rule="prod-zones", nodes=1, practice=True),
        }))  # fmt: skip
        back: dict[str, Any] = {"reactor/isolated-by": None, "reactor/isolated-by-hand": None}
        notes = back | {"reactor/isolation-released-at": "2026-01-01T00:00:00Z"}
        three_zones.patch("nodes", "a1", {"metadata": {"annotations": notes}, "spec": {"taints": None}})
        await heard.heard(zones(lambda fact: fact.zones["a"].marked == MarkedNodes(
            rule="prod-zones", nodes=1, released=1
        )))  # fmt: skip
        fenced(three_zones, "c2", isolated_by="prod-zones")
        await heard.heard(zones(lambda fact: fact.zones["c"].marked == MarkedNodes(rule="prod-zones", nodes=2)))


async def test_the_inventory_of_zones_says_what_is_needed_before_one_may_go(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    for number in range(5):
        three_zones.create(pod(f"p{number}", "a1"))
    for name in ("a1", "b1", "c1"):
        three_zones.patch("nodes", name, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}})
    three_zones.create(slice_("cart", "a", "a"))
    three_zones.create(slice_("checkout", "a", "b"))
    ready(three_zones, "c2", "False")
    async with running(node_watch.run(source(), world)):
        found = await heard.heard(
            zones(lambda fact: fact.demand_nodes is not None and fact.single_zone_services == ("a:shop/cart",))
        )
    assert isinstance(found, Zones)
    counts = {name: (zone.nodes, zone.healthy_nodes) for name, zone in found.zones.items()}
    assert counts == {"a": (2, 2), "b": (2, 2), "c": (2, 1)}
    assert (found.demand_nodes, found.quorum_members) == (3, {"a": 1, "b": 1, "c": 1})  # 10 of 4 cores each
    assert found.quorum_size == 3
    assert found.api_reachable


async def test_an_annotation_of_any_node_says_that_the_cluster_is_maintained(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    async with running(node_watch.run(source(), world)):
        await heard.heard(zones(lambda fact: len(fact.zones) == 3 and not fact.maintenance))
        three_zones.patch("nodes", "b1", {"metadata": {"annotations": {"reactor/maintenance": "kim: upgrade"}}})
        await heard.heard(zones(lambda fact: fact.maintenance == "node b1: kim: upgrade"))
        three_zones.patch("nodes", "b1", {"metadata": {"annotations": {"reactor/maintenance": None}}})
        await heard.heard(zones(lambda fact: not fact.maintenance and len(heard.inventory) > 2))


async def test_leases_that_are_not_renewed_are_expired_by_zone(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    for name in ("a1", "a2", "b1"):
        three_zones.create(lease(name))

    async def renew() -> None:
        number = 0
        while True:
            number += 1
            for name in ("a2", "b1"):
                spec = {"renewTime": f"2001-01-01T00:00:01.{number:06}Z"}
                three_zones.patch("leases", name, {"spec": spec}, "kube-node-lease")
            await asyncio.sleep(0.1)

    renewing = asyncio.create_task(renew())
    async with running(node_watch.run(source(), world)):
        await heard.heard(zones(lambda fact: fact.leases_expired == {"a": 0, "b": 0}))
        await heard.heard(zones(lambda fact: fact.leases_expired == {"a": 0.5, "b": 0}))
        renewing.cancel()
        await heard.heard(zones(lambda fact: fact.leases_expired == {"a": 1, "b": 1}))


async def test_what_may_not_be_read_is_not_made_up(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    for resource in ("pods", "endpointslices", "leases"):
        three_zones.faults.add(Fault(Forbid(), resource=resource))
    async with running(node_watch.run(source(refresh_seconds=1), world)):
        found = await heard.heard(zones(lambda fact: len(fact.zones) == 3))
        await heard.until(lambda: len(heard.inventory) >= 2)
    assert isinstance(found, Zones)
    assert (found.demand_nodes, found.leases_expired, found.api_reachable) == (None, {}, True)
    assert found.single_zone_services == (node_watch.NOT_READABLE,)


async def test_what_could_not_be_read_is_in_the_inventory_as_soon_as_it_can(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_watch, "LOOK_SECONDS", 3600)
    three_zones.create(pod("p", "a1"))
    forbidden = three_zones.faults.add(Fault(Forbid(), resource="endpointslices"))
    async with running(node_watch.run(source(), world)):
        await heard.heard(
            zones(lambda fact: fact.demand_nodes == 1 and fact.single_zone_services == (node_watch.NOT_READABLE,))
        )
        forbidden.remove()
        await heard.heard(zones(lambda fact: fact.single_zone_services == ()))


@pytest.mark.parametrize("turns", range(6))
async def test_a_stop_just_as_something_was_listed_is_no_lost_stop(
    world: SourceContext, three_zones: EmulatedCluster, turns: int
) -> None:
    """Found by the tests of a real API server: its watcher did not stop."""
    watcher = node_watch.NodeWatcher(source(), world, await world.clusters.get("east"))
    looking = asyncio.ensure_future(watcher._look())
    await asyncio.sleep(0)
    watcher._listed.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    looking.cancel()
    done, _ = await asyncio.wait({looking}, timeout=1)
    looking.cancel()
    assert done


async def test_the_inventory_is_told_again_as_soon_as_the_bus_has_lost_it(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    lost: list[Callable[[], None]] = []

    def on_facts_lost(call: Callable[[], None]) -> Callable[[], None]:
        lost.append(call)
        return partial(lost.remove, call)

    forgetful = replace(world, on_facts_lost=on_facts_lost)
    async with running(node_watch.run(source(refresh_seconds=3600), forgetful)):
        await heard.heard(zones(lambda fact: fact.demand_nodes is not None and len(fact.zones) == 3))
        told = len(heard.inventory)
        for call in lost:
            call()
        await heard.until(lambda: len(heard.inventory) > told)


async def test_while_the_api_does_not_answer_the_inventory_says_so_and_nodes_are_silent(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.reflector.GRACE_SECONDS", 0.3)
    async with running(node_watch.run(source(refresh_seconds=1), world)):
        await heard.status("zone/east/a", Health.HEALTHY)
        lost = three_zones.faults.add(Fault(Reset()))
        three_zones.cut_watches()
        found = await heard.heard(zones(lambda fact: not fact.api_reachable))
        assert isinstance(found, Zones)
        assert set(found.zones) == {"a", "b", "c"}
        told, inventory = len(heard.observations), len(heard.inventory)
        # The inventory goes on saying that the cluster does not answer; of nodes and zones nothing is published.
        await heard.until(lambda: len(heard.inventory) >= inventory + 2)
        assert len(heard.observations) == told
        lost.remove()
        await heard.heard(zones(lambda fact: fact.api_reachable and len(heard.inventory) > inventory + 2))


async def test_an_api_that_has_never_answered_is_not_reachable(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.faults.add(Fault(StatusFault(500)))
    async with running(node_watch.run(source(), world)):
        found = await heard.heard(zones(lambda fact: not fact.api_reachable))
    assert isinstance(found, Zones)
    assert (found.zones, heard.observations) == ({}, [])


async def test_what_happened_while_the_watch_was_cut_is_caught_up_with(
    world: SourceContext, heard: Heard, three_zones: EmulatedCluster, running: Running
) -> None:
    async with running(node_watch.run(source(), world)):
        await heard.status("zone/east/a", Health.HEALTHY)
        three_zones.cut_watches(CutWatch())
        ready(three_zones, "a1", "False")
        three_zones.delete("nodes", "b1")
        three_zones.create(node("d1", "d"))
        three_zones.compact()
        await heard.status("node/east/a1", Health.UNHEALTHY)
        await heard.status("node/east/b1", Health.UNKNOWN)
        await heard.status("zone/east/d", Health.HEALTHY)


def test_a_lease_that_says_nothing_of_its_length_lasts_as_long_as_the_kubelets() -> None:
    for spec in ({}, {"leaseDurationSeconds": "40"}, {"leaseDurationSeconds": 0}):
        assert heartbeats.lasts(heartbeats.project({"metadata": {}, "spec": spec})) == heartbeats.LEASE_SECONDS


async def test_of_several_nodes_of_one_target_the_worst_speaks(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    for name in ("one", "two"):
        east.create(node(name))
    async with running(node_watch.run(source(target="custom/pool-{zone}"), world)):
        await heard.status("custom/pool-a", Health.HEALTHY)
        ready(east, "one", "False")
        await heard.status("custom/pool-a", Health.UNHEALTHY)
        east.set_condition("nodes", "two", kind="MemoryPressure", status="False")
        east.delete("nodes", "one")
        await heard.status("custom/pool-a", Health.HEALTHY)
        east.delete("nodes", "two")
        await heard.status("custom/pool-a", Health.UNKNOWN)
    assert heard.statuses("custom/pool-a") == [Health.HEALTHY, Health.UNHEALTHY, Health.HEALTHY, Health.UNKNOWN]
