"""The components for zones let one leave, and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bus.messages import Outcome, ZoneStep
from reactor.runtime.clock import Clock
from tests.contract.kube.objects import pod
from tests.contract.kube.rights.acting import acting
from tests.kube.deployed import Deployed
from tests.unit.actions.zone.builders import ZONE_ID, zone_step

STEPS = ("Fence", "ShiftTraffic", "Evacuate", "CutNetwork", "Verify")


@asynccontextmanager
async def kubelets(us: Deployed) -> AsyncIterator[None]:
    """End pods that are told to, as the kubelet of their node would: until then the server keeps them."""

    async def work() -> None:
        while True:
            for one in (await us.admin.get(us.admin.path("pods"))).body["items"]:
                if "deletionTimestamp" in one["metadata"]:
                    await us.admin.delete(us.admin.path("pods", one["metadata"]["name"]), {"gracePeriodSeconds": 0})
            await asyncio.sleep(0.2)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_components_for_zones_let_a_zone_leave_and_come_back(us: Deployed) -> None:
    if us.admin.server.tier != "envtest":
        pytest.skip(
            "its pods say that controllers own them which are not there: where controllers run they are collected"
        )
    zone = f"zone-{us.admin.namespace}"
    labels = {"topology.kubernetes.io/zone": zone, "topology.k8s.aws/zone-id": ZONE_ID}
    made = await us.admin.post("/api/v1/nodes", {"metadata": {"name": zone, "labels": labels}})
    assert made.code == 201, made.body
    us.made.append(f"/api/v1/nodes/{zone}")
    other = {"topology.kubernetes.io/zone": f"other-{zone}"}
    await us.admin.post("/api/v1/nodes", {"metadata": {"name": f"other-{zone}", "labels": other}})
    us.made.append(f"/api/v1/nodes/other-{zone}")
    for node in (zone, f"other-{zone}"):
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await us.admin.patch(f"/api/v1/nodes/{node}/status", ready)
    await us.grant("base", "zone-isolation", "zone-isolation-network-policy")
    # Pods of a DaemonSet stay, and are cut off; all others leave.
    for name, owner in (("web-0", "ReplicaSet"), ("log-0", "DaemonSet")):
        body = pod(name, app=name)
        body["spec"]["nodeName"] = zone
        owned = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}
        body["metadata"]["ownerReferences"] = [owned]
        assert (await us.admin.post(us.admin.path("pods"), body)).code == 201

    def step(name: str, *, undo: bool = False) -> ZoneStep:
        settings = {"steps": STEPS, "network": {"provider": "LabelledNetworkPolicy"}, "batches": {"bakeSeconds": 0}}
        now = Clock().now()
        return zone_step(name, undo=undo, zone=zone, settings={**settings, "drainSeconds": 0}, decided_at=now)

    async with acting(us) as act, kubelets(us):

        async def done(action: ZoneStep) -> Outcome:
            async with asyncio.timeout(60):
                while (outcome := await act(action)).status != "Done":
                    assert outcome.reason == "InProgress", outcome
                return outcome

        for name in STEPS:
            await done(step(name))
        node = (await us.admin.get(f"/api/v1/nodes/{zone}")).body
        assert node["spec"]["unschedulable"] is True
        assert "reactor/isolated-zone" in {taint["key"] for taint in node["spec"]["taints"]}
        assert (await us.admin.get(us.admin.path("pods", "web-0"))).code == 404
        kept = (await us.admin.get(us.admin.path("pods", "log-0"))).body
        assert kept["metadata"]["labels"]["reactor/isolated-zone"] == ZONE_ID
        policies = us.admin.path("networkpolicies", group="networking.k8s.io/v1")
        assert len((await us.admin.get(policies)).body["items"]) == 1
        for name in ("CutNetwork", "Evacuate", "ShiftTraffic", "Fence"):
            await done(step(name, undo=True))
    node = (await us.admin.get(f"/api/v1/nodes/{zone}")).body
    assert not node["spec"].get("unschedulable")
    assert "reactor/isolated-zone" not in {taint["key"] for taint in node["spec"].get("taints", [])}
    assert (await us.admin.get(policies)).body["items"] == []
