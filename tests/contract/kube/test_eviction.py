"""Eviction: a pod goes only if its disruption budget allows it."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract.kube.objects import budget, pod
from tests.kube.api import PATIENCE, Api, Reply


def _eviction(name: str, **options: Any) -> Any:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}


async def _evict(kube: Api, name: str, **options: Any) -> Reply:
    return await kube.post(kube.path("pods", name, subresource="eviction"), _eviction(name, **options))


async def _run(kube: Api, name: str) -> Reply:
    """Make a pod that its kubelet, which is us, says runs and is ready."""
    await kube.post(kube.path("pods"), pod(name, app="web"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return await kube.patch(kube.path("pods", name, subresource="status"), {"status": status})


async def _guard(kube: Api, name: str, *, allowed: int, healthy: int) -> None:
    """Make a budget, and say of it what the disruption controller would (and does, where there is one)."""
    made = await kube.post(
        kube.path("poddisruptionbudgets", group="policy/v1"), budget(name, healthy - allowed, app="web")
    )
    assert made.code == 201, made.body
    path = kube.path("poddisruptionbudgets", name, "policy/v1")
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": healthy - allowed,
        "expectedPods": healthy,
    }
    await kube.patch(f"{path}/status", {"status": status})
    async with asyncio.timeout(PATIENCE):
        while (await kube.get(path)).body["status"].get("disruptionsAllowed") != allowed:
            await asyncio.sleep(0.05)  # a controller at work may see our pods a moment later than we do


async def test_a_pod_without_a_budget_is_evicted(kube: Api) -> None:
    await _run(kube, "web-0")
    done = await _evict(kube, "web-0")
    assert (done.code, done.body["status"]) == (201, "Success")
    assert (await kube.get(kube.path("pods", "web-0"))).code == 404


async def test_a_pod_that_is_gone_is_not_found(kube: Api) -> None:
    assert (await _evict(kube, "web-0")).code == 404


async def test_a_budget_is_spent_and_then_refuses(kube: Api) -> None:
    await _run(kube, "web-0")
    await _run(kube, "web-1")
    await _guard(kube, "web", allowed=1, healthy=2)
    assert (await _evict(kube, "web-0")).code == 201
    refused = await _evict(kube, "web-1")
    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert (await kube.get(kube.path("pods", "web-1"))).code == 200


async def test_a_pod_that_does_not_run_needs_no_budget(kube: Api) -> None:
    await kube.post(kube.path("pods"), pod("pending", app="web"))
    await kube.post(kube.path("poddisruptionbudgets", group="policy/v1"), budget("web", 1, app="web"))
    assert (await _evict(kube, "pending")).code == 201


async def test_two_budgets_on_one_pod_are_a_server_error(kube: Api) -> None:
    await _run(kube, "web-0")
    for name in ("one", "two"):
        await kube.post(kube.path("poddisruptionbudgets", group="policy/v1"), budget(name, 0, app="web"))
    refused = await _evict(kube, "web-0")
    assert refused.code == 500
    assert "more than one PodDisruptionBudget" in refused.body["message"]


async def test_an_eviction_of_another_pod_of_that_name_conflicts(kube: Api) -> None:
    old = (await _run(kube, "web-0")).body["metadata"]["uid"]
    await kube.delete(kube.path("pods", "web-0"), {"gracePeriodSeconds": 0})
    await _run(kube, "web-0")
    refused = await _evict(kube, "web-0", preconditions={"uid": old})
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert (await kube.get(kube.path("pods", "web-0"))).code == 200


async def test_a_dry_eviction_spends_and_evicts_nothing(kube: Api) -> None:
    await _run(kube, "web-0")
    await _run(kube, "web-1")
    await _guard(kube, "web", allowed=1, healthy=2)
    for _ in range(2):
        assert (await _evict(kube, "web-0", dryRun=["All"])).code == 201
    assert (await kube.get(kube.path("pods", "web-0"))).code == 200
