"""Facts about a Karmada control plane: workloads and their clusters, health, and policies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus.messages import Cluster as ClusterFact
from bus.messages import Fact, Health, Workload
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube import EmulatedCluster, Fault, Forbid
from reactor.demo.kube.crds import load_definitions
from reactor.sources.catalog import start_all
from reactor.sources.source_context import SourceContext
from tests.integration.sources.conftest import Heard

DEFINITIONS = Path(__file__).parents[2] / "data" / "karmada" / "definitions.yaml"
POLICY = {"placement": {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}}


@pytest.fixture
async def karmada(east: EmulatedCluster) -> EmulatedCluster:
    for definition in load_definitions([DEFINITIONS]):
        east.install(definition)
    return east


@asynccontextmanager
async def watching(world: SourceContext, policies: Sequence[str] = ()) -> AsyncIterator[None]:
    tasks = start_all((), world, karmada={"east": policies})
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def binding(clusters: dict[str, int], health: dict[str, str] | None = None, **annotations: str) -> JsonObject:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "nginx", "uid": "u-1"}
    listed = [{"name": name, "replicas": count} for name, count in clusters.items()]
    notes = {f"propagationpolicy.karmada.io/{key}": text for key, text in annotations.items()}
    return {
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "nginx-deployment", "namespace": "shop", "annotations": notes},
        "spec": {"resource": resource, "replicas": 3, "clusters": listed},
        "status": {"aggregatedStatus": [{"clusterName": k, "health": v} for k, v in (health or {}).items()]},
    }  # fmt: skip


def member(name: str = "member1", ready: str = "True", **spec: Any) -> JsonObject:
    summary = {"allocatable": {"pods": "110"}, "allocated": {"pods": "40"}, "allocating": {"pods": "1"}}
    conditions = [{"type": "Ready", "status": ready, "reason": "ClusterReady", "message": "fine"}]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "labels": {"tier": "gold"}}, "spec": {"syncMode": "Push", **spec},
        "status": {"conditions": conditions, "resourceSummary": summary},
    }  # fmt: skip


def nginx(holds: Callable[[Workload], bool]) -> Callable[[Fact], bool]:
    return lambda fact: isinstance(fact, Workload) and fact.object == "shop/Deployment/nginx" and holds(fact)


async def test_what_a_rule_or_a_policy_wants_carried_over_of_a_copys_status_is_told(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    rules = [{"aliasLabelName": "job", "jsonPath": "{.job.id}"}, {"aliasLabelName": "no", "jsonPath": "{.missing}"}]
    failover = {"cluster": {"purgeMode": "Directly", "statePreservation": {"rules": rules}}}
    meta = {"name": "nginx", "namespace": "shop", "labels": {"failover": "reactor"}}
    karmada.create({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": meta,
        "spec": POLICY | {"failover": failover},
    })  # fmt: skip
    bound = binding({"member1": 2}, {"member1": "Healthy"}, name="nginx", namespace="shop")
    bound["status"]["aggregatedStatus"][0]["status"] = {"job": {"id": "a-7"}, "replicas": 2}
    karmada.create(bound)
    async with watching(replace(world, preserved=frozenset({".replicas"})), ["failover=reactor"]):
        states = {"member1": {"{.job.id}": "a-7", ".replicas": "2"}}
        await heard.heard(nginx(lambda one: one.states == states))


async def test_a_binding_is_a_workload_with_its_clusters_and_their_health(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(binding({"member1": 2, "member2": 1}, {"member1": "Healthy", "member2": "Unhealthy"}))
    async with watching(world):
        found = await heard.heard(nginx(lambda one: one.clusters == {"member1": 2, "member2": 1}))
        assert isinstance(found, Workload)
        assert (found.replicas, found.uid, found.api_version, found.policy) == (3, "u-1", "apps/v1", None)
        await heard.status("workload/member1/shop/Deployment/nginx", Health.HEALTHY)
        said = await heard.status("workload/member2/shop/Deployment/nginx", Health.UNHEALTHY)
        assert (said.signal, said.stale_seconds) == ("karmada", 90)


async def test_what_is_no_member_any_more_is_unknown_and_not_repeated(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(binding({"member1": 2, "member2": 1}, {"member1": "Healthy", "member2": "Healthy"}))
    async with watching(world):
        await heard.status("workload/member2/shop/Deployment/nginx", Health.HEALTHY)
        moved = {"spec": {"clusters": [{"name": "member1", "replicas": 3}]}}
        karmada.patch("resourcebindings", "nginx-deployment", moved, "shop")
        await heard.status("workload/member2/shop/Deployment/nginx", Health.UNKNOWN)
        await heard.heard(nginx(lambda one: one.clusters == {"member1": 3}))


async def test_a_copy_that_is_leaving_is_still_looked_at(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    leaving = binding({"member1": 2}, {"member1": "Healthy", "member2": "Unhealthy"})
    task = {"fromCluster": "member2", "producer": "alert-reactor", "reason": "ClusterUnhealthy"}
    leaving["spec"]["gracefulEvictionTasks"] = [task]
    karmada.create(leaving)
    async with watching(world):
        await heard.status("workload/member2/shop/Deployment/nginx", Health.UNHEALTHY)


async def test_a_binding_that_is_deleted_is_a_workload_that_is_gone(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(binding({"member1": 2}, {"member1": "Healthy"}))
    async with watching(world):
        await heard.status("workload/member1/shop/Deployment/nginx", Health.HEALTHY)
        karmada.delete("resourcebindings", "nginx-deployment", "shop")
        await heard.heard(nginx(lambda one: not one.exists))
        await heard.status("workload/member1/shop/Deployment/nginx", Health.UNKNOWN)


async def test_a_member_is_told_with_its_place_its_room_and_its_taints(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    karmada.create(member(region="eu", zones=["a", "b"], provider="p", taints=[taint]))
    async with watching(world):
        found = await heard.heard(lambda fact: isinstance(fact, ClusterFact))
        assert isinstance(found, ClusterFact)
        assert (found.name, found.region, found.zone, found.provider) == ("member1", "eu", "a", "p")
        assert (found.labels, found.available_replicas) == ({"tier": "gold"}, 69)
        assert [(one.key, one.effect, one.time_added is not None) for one in found.taints] == [("k", "NoExecute", True)]


@pytest.mark.parametrize(
    ("ready", "status"), [("True", Health.HEALTHY), ("False", Health.UNHEALTHY), ("Unknown", Health.UNKNOWN)]
)
async def test_a_members_ready_condition_is_its_health(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard, ready: str, status: Health
) -> None:
    karmada.create(member(ready=ready))
    async with watching(world):
        said = await heard.status("cluster/member1", status)
        assert said.detail == "ClusterReady: fine"


async def test_a_member_that_leaves_is_told_once_and_unknown(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(member())
    async with watching(world):
        await heard.status("cluster/member1", Health.HEALTHY)
        karmada.delete("clusters", "member1")
        await heard.heard(lambda fact: isinstance(fact, ClusterFact) and not fact.exists)
        await heard.status("cluster/member1", Health.UNKNOWN)


def policy(labels: dict[str, str]) -> JsonObject:
    meta = {"name": "p", "namespace": "shop", "labels": labels}
    kind = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}
    return {**kind, "metadata": meta, "spec": POLICY}


async def test_the_policy_of_a_binding_goes_along_and_follows_its_changes(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(policy({"reactor": "yes"}))
    karmada.create(binding({"member1": 2}, namespace="shop", name="p"))
    async with watching(world, ["reactor=yes"]):
        await heard.heard(nginx(lambda one: one.policy == POLICY))
        assert not [fact for fact in heard.inventory if nginx(lambda one: one.policy is None)(fact)], "never without"
        karmada.patch("propagationpolicies", "p", {"spec": {"propagateDeps": True}}, "shop")
        await heard.heard(nginx(lambda one: (one.policy or {}).get("propagateDeps") is True))
        karmada.patch("propagationpolicies", "p", {"metadata": {"labels": {"reactor": "no"}}}, "shop")
        await heard.heard(nginx(lambda one: one.policy is None))


async def test_a_policy_that_no_rule_chooses_is_not_told(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    karmada.create(policy({"reactor": "no"}))
    karmada.create(binding({"member1": 2}, namespace="shop", name="p"))
    async with watching(world, ["reactor=yes"]):
        found = await heard.heard(nginx(lambda _: True))
        assert isinstance(found, Workload)
        assert found.policy is None


async def test_nothing_is_said_of_bindings_while_policies_cannot_be_read(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    hidden = karmada.faults.add(Fault(Forbid(), resource="propagationpolicies"))
    karmada.create(policy({"reactor": "yes"}))
    karmada.create(binding({"member1": 2}, namespace="shop", name="p"))
    karmada.create(member())
    async with watching(world, ["reactor=yes"]):
        await heard.status("cluster/member1", Health.HEALTHY)
        assert not [fact for fact in heard.inventory if isinstance(fact, Workload)]
        hidden.remove()
        await heard.heard(nginx(lambda one: one.policy == POLICY))


async def test_what_was_seen_in_one_look_is_dated_then_however_slowly_the_bus_takes_it(
    karmada: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    members = [f"member{number}" for number in range(5)]
    for name in members:
        karmada.create(member(name))
    karmada.create(binding(dict.fromkeys(members, 1), dict.fromkeys(members, "Healthy")))

    async def slowly(fact: Fact) -> None:
        await asyncio.sleep(0.2)
        await heard.tell(fact)

    def dates(start: str) -> list[datetime]:
        return [one.observed_at for one in heard.observations if one.target.startswith(start)]

    async with watching(replace(world, tell=slowly)):
        await heard.until(lambda: min(len(dates("cluster/")), len(dates("workload/"))) >= len(members))
    # One after the other it would take the bus 1.6 s from the first to the last.
    for start in ("cluster/", "workload/"):
        assert max(dates(start)) - min(dates(start)) < timedelta(seconds=0.2)
