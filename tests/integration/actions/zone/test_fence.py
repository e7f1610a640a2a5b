"""Nodes of a zone are fenced and let go: only that zone's, only what we did, and late ones too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, Html, LoseAnswer, StatusFault
from tests.integration.actions.zone.scene import CrashingApi, Hurried, Reactor, node, pod

FENCE = {"key": "reactor/isolated-zone", "value": "use1-az6", "effect": "NoSchedule"}


def reactor(api: KubeApi, **settings: object) -> Reactor:
    return Reactor({"prod": api}, Hurried(), settings)


def fenced(cluster: EmulatedCluster) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.list("nodes") if FENCE in one["spec"].get("taints", [])}


def said_by(cluster: EmulatedCluster, name: str) -> dict[str, str]:
    notes = cluster.get("nodes", name)["metadata"]["annotations"]
    return {key: value for key, value in notes.items() if key.startswith("reactor/isolated")}


async def test_a_node_that_joins_later_is_fenced_when_the_fence_is_asked_for_again(
    east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    us = reactor(api)
    await us.failover(["Fence"])
    east.create(node("a2"))
    outcome = await us.once(us.action("Fence", status="Done", generation=2))
    assert (outcome.status, outcome.wrote, fenced(east)) == ("Done", True, {"a1", "a2"})


async def test_a_node_says_who_has_isolated_it_until_it_is_let_go(east: EmulatedCluster, api: KubeApi) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    before = east.get("nodes", "a1")
    await reactor(api).failover(["Fence"])
    assert said_by(east, "a1") == {"reactor/isolated-by": "prod-zones"}
    us = reactor(api, by="ann")  # a person has taken it over
    await us.failover(["Verify"])
    assert said_by(east, "a1") == {"reactor/isolated-by": "prod-zones", "reactor/isolated-by-hand": "ann"}
    await us.failback()
    after = east.get("nodes", "a1")
    assert (after["metadata"].get("annotations") or {}, after["spec"]) == ({}, before["spec"])
    await reactor(api, practice=True).failover(["Fence"])
    assert said_by(east, "a1") == {"reactor/isolated-by": "prod-zones", "reactor/isolated-in-practice": "true"}


async def test_verify_fences_and_empties_a_node_that_joined_since(east: EmulatedCluster, api: KubeApi) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    us = reactor(api)
    await us.failover()
    east.create(node("a2"))
    east.create(pod("early-bird", "a2"))
    await us.until_done(us.action("Verify", status="Done", generation=9))
    assert (fenced(east), east.list("pods")) == ({"a1", "a2"}, [])


async def test_no_other_zone_is_touched(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b"), ("c1", "us-east-1c")):
        east.create(node(name, zone))
    await reactor(api).failover()
    written = {write.name for write in emulator.writes.effective("nodes", manager="alert-reactor")}
    assert written == {"a1"}


async def test_a_zone_that_no_node_carries_is_refused_with_the_zones_there_are(
    east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("b1", "us-east-1b"))
    us = reactor(api)
    outcome = await us.once(us.action("Fence"))
    assert (outcome.status, outcome.reason) == ("Failed", "ZoneNotFound")
    assert "zones: us-east-1b" in outcome.detail


async def test_an_id_in_the_place_of_the_name_is_told_as_that(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api)
    outcome = await us.once(us.action("Fence", zone="use1-az6"))
    assert outcome.reason == "ZoneNotFound"
    assert "use1-az6 is the ID of the zone us-east-1a" in outcome.detail


async def test_an_id_of_another_zone_is_refused_before_anything_is_written(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api)
    outcome = await us.once(us.action("Fence", zone_id="use1-az1"))
    assert (outcome.reason, fenced(east)) == ("ZoneMismatch", set())


async def test_a_node_fenced_for_another_zone_is_not_taken_over(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1", taints=[{**FENCE, "value": "use1-az9"}]))
    us = reactor(api)
    outcome = await us.once(us.action("Fence"))
    assert (outcome.status, outcome.reason) == ("Failed", "ChangeRefused")


async def test_a_zone_that_loses_all_its_nodes_while_isolated_stays_isolated(
    east: EmulatedCluster, api: KubeApi
) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    us = reactor(api)
    await us.failover(["Fence", "ShiftTraffic", "Evacuate"])
    east.delete("nodes", "a1")
    await us.failover(["Verify"])
    await us.failback()


async def test_nodes_come_back_one_then_a_quarter_then_the_rest(east: EmulatedCluster, api: KubeApi) -> None:
    for number in range(8):
        east.create(node(f"a{number}"))
    us = reactor(api)
    await us.failover(["Fence"])
    action = us.action("Fence", undo=True)
    left: list[int] = []
    for _ in range(6):
        await us.once(action)
        left.append(len(fenced(east)))
        us.clock.forward(30)
    # Each batch is watched for 60 s: two looks later the next one goes.
    assert left == [7, 7, 5, 5, 0, 0]
    assert (await us.once(action)).status == "Done"


async def test_a_node_that_is_not_well_when_it_is_back_keeps_the_others_fenced(
    east: EmulatedCluster, api: KubeApi
) -> None:
    for number in range(3):
        east.create(node(f"a{number}"))
    us = reactor(api)
    await us.failover(["Fence"])
    action = us.action("Fence", undo=True)
    await us.once(action)
    us.clock.forward(600)
    back = next(one["metadata"]["name"] for one in east.list("nodes") if one["metadata"]["name"] not in fenced(east))
    east.set_condition("nodes", back, kind="Ready", status="False")
    outcome = await us.once(action)
    assert (outcome.reason, len(fenced(east))) == ("InProgress", 2)
    assert f"not Ready: {back}" in outcome.detail
    east.set_condition("nodes", back, kind="Ready", status="True")
    await us.until_done(action)


async def test_what_a_person_brings_back_without_proof_waits_for_no_node(east: EmulatedCluster, api: KubeApi) -> None:
    for number in range(3):
        east.create(node(f"a{number}"))
    us = reactor(api)
    await us.failover(["Fence"])
    for number in range(3):
        east.set_condition("nodes", f"a{number}", kind="Ready", status="False")
    action = us.action("Fence", undo=True)
    action = action.model_copy(update={"settings": {**action.settings, "unproven": True}})
    for _ in range(3):
        await us.once(action)
        us.clock.forward(600)
    assert not fenced(east)


async def test_two_reactors_at_once_leave_one_taint(east: EmulatedCluster, api: KubeApi) -> None:
    for number in range(6):
        east.create(node(f"a{number}"))
    us, they = reactor(api), reactor(api)
    outcomes = await asyncio.gather(us.once(us.action("Fence")), they.once(they.action("Fence")))
    assert {outcome.status for outcome in outcomes} == {"Done"}
    assert all(one["spec"]["taints"] == [FENCE] for one in east.list("nodes"))


async def test_a_write_whose_answer_is_lost_is_not_doubled(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    east.faults.add(Fault(LoseAnswer(), verb="patch", resource="nodes", count=1))
    await reactor(api).failover(["Fence"])
    assert len(emulator.writes.effective("nodes", manager="alert-reactor")) == 1


async def test_a_dry_run_touches_nothing(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    emulator.writes.clear()
    us = reactor(api)
    outcome = await us.once(us.action("Fence", mode="DryRun"))
    assert (outcome.status, outcome.reason, len(emulator.writes)) == ("Refused", "DryRun", 0)


@pytest.mark.parametrize(
    ("settings", "more", "reason"),
    [
        ({"force": "Sometimes"}, {}, "Invalid"),
        ({}, {"zone": "a,b!=c"}, "Invalid"),
        ({}, {"cluster": "prod", "step": "Dance"}, "Invalid"),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    east: EmulatedCluster, api: KubeApi, settings: dict[str, object], more: dict[str, Any], reason: str
) -> None:
    east.create(node("a1"))
    us = reactor(CrashingApi(api), **settings)
    outcome = await us.once(us.action(**{"step": "Fence", **more}))
    assert (outcome.status, outcome.reason) == ("Failed", reason)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"sparedNodes": ["a1"]}, "settings.sparedNodes"),
        ({"network": {"provider": "None", "sparedSubnets": ["x"]}}, "settings.network.sparedSubnets"),
        ({"batches": {"first": 1, "pauseSeconds": 9}}, "settings.batches.pauseSeconds"),
    ],
)
@pytest.mark.parametrize("step", ["Fence", "Evacuate", "Verify"])
async def test_a_restraint_of_a_later_release_is_refused_before_anything_is_written(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, step: str, settings: dict[str, object], where: str
) -> None:
    east.create(node("a1"))
    emulator.writes.clear()
    us = reactor(api, **settings)
    outcome = await us.once(us.action(step))
    assert (outcome.status, outcome.reason, len(emulator.writes)) == ("Failed", "Invalid", 0)
    assert outcome.detail == f"{where}: this release does not know this key"


@pytest.mark.parametrize("effect", [StatusFault(404), Html(404)], ids=["kind not served", "page of a proxy"])
async def test_a_404_that_names_no_object_does_not_say_that_a_node_is_gone(
    east: EmulatedCluster, api: KubeApi, effect: StatusFault | Html
) -> None:
    """An API server that starts, or a proxy before it, answers 404 for what is there: the zone is not fenced."""
    east.create(node("a1"))
    us = reactor(api)
    fault = east.faults.add(Fault(effect, verb="patch", resource="nodes"))
    outcome = await us.once(us.action("Fence"))
    assert (outcome.status, fenced(east)) == ("Failed", set())
    fault.remove()
    outcome = await us.once(us.action("Fence", generation=2))
    assert (outcome.status, fenced(east)) == ("Done", {"a1"})
