"""Remembered copies: written while a cluster is well, and enough to place from when it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bus.messages import WorkloadRef
from bus.testing.memory import MemoryBus
from bus.topology import TEMPLATES
from reactor.actions.workload.remembering import one_round
from reactor.actions.workload.templates import BYTES_MAX, BusTemplates, NotKept
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Fault, Reset
from reactor.runtime.clock import Clock
from rules.kinds.workload.copy_needs import RememberedWorkloads, reads
from rules.kinds.workload.model import WorkloadFailover
from tests.clock import HandClock
from tests.integration.actions.workload.conftest import Scene
from tests.unit.actions.workload.builders import NEEDY, NGINX, deployment, needed, place


@pytest.fixture
async def templates() -> BusTemplates:
    return BusTemplates(MemoryBus(Clock().now).store(TEMPLATES))


def rule(**selector: Any) -> RememberedWorkloads:
    chosen = {"apiVersion": "apps/v1", "kind": "Deployment", **selector}
    body = {"name": "nginx", "kind": "WorkloadFailover", "resourceSelectors": [chosen], "propagateDeps": True}
    (wanted,) = reads(WorkloadFailover.model_validate(body, strict=False))
    assert isinstance(wanted, RememberedWorkloads)
    return wanted


@pytest.fixture
async def member1(scene: Scene) -> EmulatedCluster:
    source = scene.members["member1"]
    for obj in (*needed(), deployment(spec=NEEDY), deployment(name="other")):
        source.create(obj)
    return source


@pytest.fixture
async def api(scene: Scene, member1: EmulatedCluster) -> KubeApi:
    return await scene.world.clusters("member1")


async def test_a_workload_of_a_dead_cluster_is_placed_from_memory(
    scene: Scene, member1: EmulatedCluster, api: KubeApi, templates: BusTemplates
) -> None:
    assert await one_round(api, [rule(namespace="shop", name="nginx")], templates) == 4
    member1.faults.add(Fault(Reset()))
    scene.members["member2"].create(needed()[1])
    scene.world = replace(scene.world, templates=templates)
    outcome = await scene.do(place({"member2": 3}, "member1"))
    assert outcome.status == "Done", outcome.detail
    assert scene.members["member2"].get("deployments", "nginx", "shop")["spec"]["replicas"] == 3


async def test_what_has_not_changed_is_not_written_again(api: KubeApi, templates: BusTemplates) -> None:
    rules = [rule(namespace="shop")]
    assert await one_round(api, rules, templates) == 5
    assert await one_round(api, rules, templates) == 0


async def test_clusters_with_copies_of_another_size_do_not_overwrite_each_other(
    member1: EmulatedCluster, api: KubeApi, templates: BusTemplates
) -> None:
    rules = [rule(name="nginx")]
    await one_round(api, rules, templates)
    member1.patch("deployments", "nginx", {"spec": {"replicas": 9}}, "shop")
    assert await one_round(api, rules, templates) == 0


async def test_secrets_are_neither_read_nor_kept(
    member1: EmulatedCluster, api: KubeApi, templates: BusTemplates
) -> None:
    reads = member1.faults.add(Fault(Reset(), resource="secrets"))
    await one_round(api, [rule()], templates)
    assert reads.hits == 0
    assert await templates.get(WorkloadRef(namespace="shop", kind="Secret", name="key", api_version="v1")) is None


@pytest.mark.parametrize(
    ("selector", "kept"),
    [
        ({"name": "nginx"}, ["nginx"]),
        ({"namespace": "shop"}, ["nginx", "other"]),
        ({"namespace": "elsewhere"}, []),
        ({"labelSelector": {"matchLabels": {"app": "other"}}}, ["other"]),
    ],
)
async def test_only_what_a_rule_selects_is_kept(
    api: KubeApi, templates: BusTemplates, selector: dict[str, Any], kept: list[str]
) -> None:
    await one_round(api, [rule(**selector)], templates)
    refs = [NGINX.model_copy(update={"name": name}) for name in ("nginx", "other")]
    assert [ref.name for ref in refs if await templates.get(ref) is not None] == kept


async def test_a_kind_that_is_not_served_there_has_no_workloads(api: KubeApi, templates: BusTemplates) -> None:
    flink = rule(apiVersion="flink.invalid/v1", kind="FlinkDeployment")
    assert await one_round(api, [flink], templates) == 0


async def test_an_object_that_is_too_large_is_refused_with_its_size(templates: BusTemplates) -> None:
    import random

    noise = random.Random(7).randbytes(BYTES_MAX).hex()
    with pytest.raises(NotKept, match="shop/Deployment/nginx is not remembered"):
        await templates.put(NGINX, {"data": noise[: 2 * BYTES_MAX]})


async def test_what_another_writer_wrote_there_is_no_copy() -> None:
    store = MemoryBus(Clock().now).store(TEMPLATES)
    templates = BusTemplates(store)
    await templates.put(NGINX, {"kind": "Deployment"})
    [entry] = await store.entries(">")
    for odd in (b"", b"not zlib", b"x\x9c\x03\x00"):
        await store.put(entry.key, odd, revision=None)
        assert await templates.get(NGINX) is None


async def test_a_copy_that_does_not_change_is_written_again_before_the_bus_forgets_it() -> None:
    clock = HandClock()
    store = MemoryBus(clock.now).store(TEMPLATES)
    templates = BusTemplates(store, clock)
    await templates.put(NGINX, {"kind": "Deployment"})
    [first] = await store.entries(">")
    clock.seconds = TEMPLATES.max_age.total_seconds() / 2
    assert not await templates.put(NGINX, {"kind": "Deployment"}), "nothing has changed"
    [again] = await store.entries(">")
    assert again.revision > first.revision
    await templates.put(NGINX, {"kind": "Deployment"})
    assert await store.entries(">") == [again]
