"""The whole service on a real Karmada: its scheduler, its controllers, its webhook. Skipped where there is none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reactor.runtime.clock import Clock
from tests.contract.karmada.cases import duplicated, weighted
from tests.e2e.alerts import body, firing, resolved
from tests.e2e.moving import GUARDS, group, holds, knows, settled
from tests.e2e.service import Service
from tests.e2e.waiting import until_told
from tests.karmada.driven import Driven, driven
from tests.karmada.planes import CLUSTERS, MEMBERS, NAMESPACE
from tests.karmada.real import Karmada, why_not

TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for key in ("cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable", "reactor/brownout")
]
RULES = f"""
apiVersion: reactor/v1
sources:
- name: brownout
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: "cluster/{{service}}"
  onResolved: Healthy
rules:
- name: brownout
  kind: ClusterTaint
  mode: Enforce
  carrier: Karmada
  match: cluster/*
  signals: [brownout]
  taints: [{{key: reactor/brownout, effect: NoExecute}}]
- name: shop
  kind: WorkloadFailover
  mode: Enforce
  carrier: Karmada
  signals: [karmada]
  guards: {GUARDS}
"""

pytestmark = pytest.mark.xdist_group("a Karmada")


@pytest.fixture(scope="module")
def karmada() -> Iterator[Karmada]:
    if why := why_not():
        pytest.fail(why) if os.environ.get("REACTOR_REQUIRE_KARMADA") == "1" else pytest.skip(why)
    running = Karmada()
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
async def plane(karmada: Karmada) -> AsyncIterator[Driven]:
    async with driven(karmada) as found:
        yield found


GRACEFULLY = {"purgeMode": "Gracefully", "gracePeriodSeconds": 60}


def reactor(plane: Driven, folder: Path, placement: dict[str, Any], failover: dict[str, Any] | None = None) -> Service:
    """A reactor whose rule for workloads is the policy with this placement. `failover`: of clusters by default."""
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE}
    failover = failover or {"cluster": GRACEFULLY}
    own = {"resourceSelectors": [selector], "placement": placement, "failover": failover}
    text = "".join(f"  {line}\n" for line in yaml.safe_dump(own).splitlines())
    settings = {"clusters": {"karmada": {"kubeconfig": str(plane.kubeconfig)}}}
    return Service(folder / "reactor", rules=RULES + text, settings=settings)


def tolerant(placement: dict[str, Any]) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": [*MEMBERS]}, "clusterTolerations": TOLERATIONS, **placement}


@pytest.mark.parametrize(
    ("placement", "before", "after", "tainted"),
    [
        (duplicated(1), {"m2": 2}, {"m1"}, "m2"),
        (duplicated(2, 2), {"m1": 2, "m3": 2}, {"m2", "m3"}, "m1"),
        (weighted(m1=1, m2=1), {"m1": 1, "m2": 1}, {"m2"}, "m1"),
    ],
    ids=["the only copy", "one of two", "half of the replicas"],
)
async def test_a_workload_leaves_a_browned_out_cluster_without_a_moment_of_outage(
    plane: Driven, tmp_path: Path, placement: dict[str, Any], before: dict[str, int], after: set[str], tainted: str
) -> None:
    """K1: the healthy copy was deleted 214 ms after the alert's toleration, and our outcomes said Done."""
    await plane.deploy("web", tolerant(placement), before, 2)
    async with reactor(plane, tmp_path, tolerant(placement)) as service:
        await knows(service, {"web": {*before}}, clusters=3, rule="shop")
        since = Clock().now().timestamp()
        assert await service.post(body(firing(tainted)), to="brownout") == 200

        async def purged() -> bool:
            return {*await plane.where("web")} == after and not await plane.tasks("web")

        await plane.until(purged, f"web is on {after} alone", "web")
        await settled(service, "web", rule="shop")
    await plane.healthy("web", *after)
    print(plane.timelines["web"])
    plane.never_out("web", since)


async def test_a_dead_member_is_left_and_a_scheduler_that_is_away_is_said(plane: Driven, tmp_path: Path) -> None:
    await plane.deploy("web", tolerant(duplicated(2, 2)), {"m1": 2, "m3": 2}, 2)
    async with reactor(plane, tmp_path, tolerant(duplicated(2, 2))) as service:
        await knows(service, {"web": {"m1", "m3"}}, clusters=3, rule="shop")
        since = Clock().now().timestamp()
        await plane.scheduler(runs=False)
        try:
            await plane.reachable("m1", yes=False)

            async def waits() -> bool:
                found = await group(service, "web", "shop")
                return found is not None and any("has not answered" in one.failed for one in found.outbox)

            await until_told(waits, "the status says that the scheduler has not answered")
            assert (await plane.where("web"), await plane.tasks("web")) == ({"m2": 2, "m3": 2}, ["m1"])
        finally:
            await plane.scheduler(runs=True)

        async def purged() -> bool:
            return not await plane.tasks("web")

        await plane.until(purged, "the old copy is purged", "web")
        await settled(service, "web", rule="shop")
    assert await plane.where("web") == {"m2": 2, "m3": 2}
    plane.never_out("web", since)


@pytest.mark.parametrize(
    ("placement", "before", "after"),
    [
        (duplicated(2, 2), {"m1": 2, "m3": 2}, {"m2", "m3"}),
        (weighted(m1=1, m2=1, m3=1), {"m1": 1, "m2": 1, "m3": 1}, {"m2", "m3"}),
    ],
    ids=["full copies", "divided"],
)
async def test_a_copy_that_stays_bad_on_a_living_cluster_is_replaced_and_its_cluster_gets_none_back(
    plane: Driven, tmp_path: Path, placement: dict[str, Any], before: dict[str, int], after: set[str]
) -> None:
    """Application failover: nothing is tainted, so only the limits of the policy keep the scheduler away from m1."""
    failover = {"application": {"decisionConditions": {"tolerationSeconds": 2}, **GRACEFULLY}}
    replicas = sum(before.values()) if "Divided" in str(placement) else 2
    await plane.deploy("web", tolerant(placement), before, replicas)
    async with reactor(plane, tmp_path, tolerant(placement), failover) as service:
        await knows(service, {"web": {*before}}, clusters=3, rule="shop")
        since = Clock().now().timestamp()
        plane.sick("m1", "web")

        async def purged() -> bool:
            return {*await plane.where("web")} == after and not await plane.tasks("web")

        await plane.until(purged, f"web is on {after} alone", "web")
        await settled(service, "web", rule="shop")
    assert {*await plane.answered("web")} == after
    plane.never_out("web", since)


async def test_a_brownout_that_is_over_before_the_new_copy_is_ready_takes_the_eviction_back(
    plane: Driven, tmp_path: Path
) -> None:
    """K2, through the whole service."""
    await plane.deploy("web", tolerant(duplicated(1)), {"m2": 2}, 2)
    plane.sick("m1", "web")
    async with reactor(plane, tmp_path, tolerant(duplicated(1))) as service:
        await knows(service, {"web": {"m2"}}, clusters=3, rule="shop")
        since = Clock().now().timestamp()
        assert await service.post(body(firing("m2")), to="brownout") == 200

        async def leaves() -> bool:
            return await plane.where("web") == {"m1": 2} and await plane.tasks("web") == ["m2"]

        await plane.until(leaves, "web leaves m2", "web")
        assert await service.post(body(resolved("m2")), to="brownout") == 200

        async def back() -> bool:
            return await plane.where("web") == {"m2": 2} and not await plane.tasks("web")

        await plane.until(back, "web is back on m2 alone", "web")
        await settled(service, "web", rule="shop")
    await plane.healthy("web", "m2")
    plane.never_out("web", since)


async def test_karmadas_own_taint_manager_is_served_by_taints_and_holds_moves_of_workloads_up(
    plane: Driven, tmp_path: Path
) -> None:
    """K3 and K4: its Deployment is visible, its switches are on, and the reactor starts."""
    switches = ["--feature-gates=AllAlpha=false,AllBeta=true", "--enable-no-execute-taint-eviction=true"]
    container = {"name": "m", "image": "karmada-controller-manager:v1.19.0", "command": ["/bin/manager", *switches]}
    labels = {"app": "manager"}
    metadata = {"name": "karmada-controller-manager", "namespace": "karmada-system"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    manager = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip
    # Karmada waits longer than our rule does, so that it does not evict before we have tried to.
    slower = [one | {"tolerationSeconds": 15} for one in TOLERATIONS]
    await plane.deploy("web", tolerant(duplicated(2)) | {"clusterTolerations": slower}, {"m1": 2, "m2": 2}, 2)
    await asyncio.to_thread(plane.karmada.apply, manager)
    plane.karmada.controller_manager(*switches)
    try:
        async with reactor(plane, tmp_path, tolerant(duplicated(2))) as service:
            await knows(service, {"web": {"m1", "m2"}}, clusters=3, rule="shop")
            assert await service.post(body(firing("m2")), to="brownout") == 200
            held = await holds(service, "web", "ActionFailed", rule="shop")
            assert held.held is not None
            assert "KarmadaSwitch" in held.held.detail
            taints = (await plane.api.get(f"{CLUSTERS}/m2"))["spec"]["taints"]
            assert "reactor/brownout" in [one["key"] for one in taints]

            async def left() -> bool:
                return {*await plane.where("web")} == {"m1", "m3"}

            await plane.until(left, "Karmada itself has evicted by our taint", "web")
            by = [one["producer"] for one in (await plane.binding("web"))["spec"].get("gracefulEvictionTasks") or []]
            assert "alert-reactor" not in by
    finally:
        plane.karmada.controller_manager()
        path = "/apis/apps/v1/namespaces/karmada-system/deployments/karmada-controller-manager"
        await asyncio.to_thread(plane.karmada.plane.request, "DELETE", path)
