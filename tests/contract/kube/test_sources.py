"""Our sources read what a real API server writes, and not only what the emulator does."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bus.messages import Cluster as ClusterFact
from bus.messages import Health, Observation, RefreshRequest, WorkloadCopy, Zones
from bus.subjects import refresh
from bus.testing.memory import MemoryBus
from reactor.clients.clusters import Clusters
from reactor.clients.list_page import ListPage
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings
from reactor.sources.kubernetes import endpoints_watch, lease_watch, node_watch, workload_watch
from reactor.sources.probes import cluster_probe
from reactor.sources.refresh import RefreshRequests
from reactor.sources.source_context import SourceContext
from reactor.sources.source_context import scheduler as new_scheduler
from rules.rulefile.sources import ClusterProbe, CustomKind, EndpointsWatch, LeaseWatch, NodeWatch, WorkloadWatch
from tests.contract.kube.objects import Widgets, deployment
from tests.integration.sources.conftest import Heard, Running, running
from tests.kube.api import Api

__all__ = ["running"]
LEASES = "coordination.k8s.io/v1"
SLICES = "discovery.k8s.io/v1"


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def world(kube: Api, heard: Heard, tmp_path: Path) -> AsyncIterator[SourceContext]:
    """The server as our settings would name it."""
    path = tmp_path / "kubeconfig"
    if kube.server.tier == "existing":
        shutil.copy(os.environ["KUBECONFIG"], path)
    else:
        token = kube.server.headers.get("Authorization", "").removeprefix("Bearer ")
        if kube.server.tier == "k3s" and not token:
            pytest.skip("its client certificate is not kept by the fixture")
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": kube.server.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "us", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "us"}}],
        }))  # fmt: skip
    clusters = Clusters({"here": ClusterSettings(kubeconfig=path)})
    made = SourceContext(
        clock=Clock(), tell=heard.tell, clusters=clusters, prometheus={}, http=cast("Any", None),
        scheduler=new_scheduler(),
    )  # fmt: skip
    made.scheduler.start()
    yield made
    made.scheduler.shutdown(wait=False)
    await clusters.close()


async def test_an_api_server_that_runs_is_ready(world: SourceContext, heard: Heard, running: Running) -> None:
    source = ClusterProbe(name="api", kind="ClusterProbe", cluster="here", every_seconds=1)
    async with running(cluster_probe.run(source, world)):
        said = await heard.status("cluster/here", Health.HEALTHY)
        assert said.detail == "/readyz was answered 200"
        await heard.heard(lambda fact: isinstance(fact, ClusterFact) and fact.name == "here")


async def test_a_renewed_lease_is_a_heartbeat(kube: Api, world: SourceContext, heard: Heard, running: Running) -> None:
    made = {
        "apiVersion": LEASES, "kind": "Lease", "metadata": {"name": "member1"},
        "spec": {"holderIdentity": "member1", "renewTime": "2001-01-01T00:00:00.000000Z"},
    }  # fmt: skip
    await kube.post(kube.path("leases", group=LEASES), made)
    source = LeaseWatch(
        name="beats", kind="LeaseWatch", cluster="here", namespace=kube.namespace, monitor_seconds=0.2, grace_seconds=2
    )
    watch = lease_watch.LeaseWatcher(source, world, await world.clusters.get("here"))
    async with running(watch.run()):
        await watch.leases.synced.wait()
        renewed = {"spec": {"renewTime": "2001-01-01T00:00:10.000000Z"}}
        await kube.patch(kube.path("leases", "member1", LEASES), renewed)
        await heard.status("cluster/member1", Health.HEALTHY)
        await heard.status("cluster/member1", Health.UNKNOWN)


async def _answered(heard: Heard, target: str, moment: datetime) -> Observation:
    """Observation of the target as of this moment or later."""
    await heard.until(lambda: (last := heard.last(target)) is not None and last.observed_at >= moment)
    last = heard.last(target)
    assert last is not None
    return last


async def test_few_services_are_read_alone_and_found_as_the_watch_has_shown_them(
    kube: Api, world: SourceContext, heard: Heard, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service, ready in (("cart", False), ("checkout", True)):
        await kube.post(kube.path("endpointslices", group=SLICES), {
            "apiVersion": SLICES, "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
        })  # fmt: skip
    cart, checkout = (f"service/here/{kube.namespace}/{name}" for name in ("cart", "checkout"))
    api, bus, paths = await world.clusters.get("here"), MemoryBus(world.clock.now), list[str]()
    page = api.page

    async def noted(path: str, query: Mapping[str, str]) -> ListPage:
        paths.append(path)
        return await page(path, query)

    monkeypatch.setattr(api, "page", noted)
    asked = replace(world, requests=RefreshRequests(bus, world.clock).hear)
    source = EndpointsWatch(name="ends", kind="EndpointsWatch", cluster="here")
    async with running(endpoints_watch.run(source, asked)):
        await heard.status(cart, Health.UNHEALTHY)
        await heard.status(checkout, Health.HEALTHY)
        paths.clear()
        moment = world.clock.now()
        request = RefreshRequest(targets=(cart, checkout), not_before=moment)
        await bus.notify(refresh("ends"), request.model_dump_json().encode())
        for target, status in ((cart, Health.UNHEALTHY), (checkout, Health.HEALTHY)):
            said = await _answered(heard, target, moment)
            assert said.status is status
    assert paths == [kube.path("endpointslices", group=SLICES)]


async def test_a_deployments_status_is_read_as_its_controller_writes_it(
    kube: Api, world: SourceContext, heard: Heard, running: Running
) -> None:
    created = await kube.post(kube.path("deployments", group="apps/v1"), deployment("web", replicas=0))
    target = f"workload/here/{kube.namespace}/Deployment/web"
    source = WorkloadWatch(name="w", kind="WorkloadWatch", cluster="here", namespace=kube.namespace)
    async with running(workload_watch.run(source, world)):
        copy = await heard.heard(lambda fact: isinstance(fact, WorkloadCopy) and fact.name == "web")
        assert isinstance(copy, WorkloadCopy)
        assert (copy.uid, copy.replicas) == (created.body["metadata"]["uid"], 0)
        # Where no controller runs we say what it would; where one does it says the same.
        observed = {"status": {"observedGeneration": created.body["metadata"]["generation"]}}
        await kube.patch(kube.path("deployments", "web", "apps/v1", subresource="status"), observed)
        await heard.status(target, Health.HEALTHY)
        await kube.delete(kube.path("deployments", "web", "apps/v1"))
        await heard.heard(lambda fact: isinstance(fact, WorkloadCopy) and not fact.exists)


async def test_a_custom_kind_is_found_by_discovery(
    kube: Api, widgets: Widgets, world: SourceContext, heard: Heard, running: Running
) -> None:
    await kube.post(widgets.path(), widgets.widget("left", size=1))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await kube.patch(widgets.path("left", subresource="status"), ready)
    kind = CustomKind(api_version=f"{widgets.group}/v1", kind="Widget")
    source = WorkloadWatch(name="w", kind="WorkloadWatch", cluster="here", namespace=kube.namespace, kinds=(kind,))
    async with running(workload_watch.run(source, world)):
        await heard.status(f"workload/here/{kube.namespace}/Widget/left", Health.HEALTHY)


async def test_nodes_and_zones_are_read(kube: Api, world: SourceContext, heard: Heard, running: Running) -> None:
    # A label of this test's own, so that the nodes of a shared cluster are in no zone of ours.
    label, name = f"{kube.namespace}/zone", f"node-{kube.namespace}"
    made = await kube.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {label: "z1"}}})
    assert made.code == 201, made.body
    ready = {"status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    }}  # fmt: skip
    await kube.patch(f"/api/v1/nodes/{name}/status", ready)
    source = NodeWatch(name="nodes", kind="NodeWatch", cluster="here", zone_label=label)
    try:
        async with running(node_watch.run(source, world)):
            await heard.status(f"node/here/{name}", Health.HEALTHY)
            await heard.status("zone/here/z1", Health.HEALTHY)
            found = await heard.heard(lambda fact: isinstance(fact, Zones) and "z1" in fact.zones)
            assert isinstance(found, Zones)
            assert found.api_reachable
    finally:
        await kube.delete(f"/api/v1/nodes/{name}")
