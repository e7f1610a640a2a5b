"""The whole service on real API servers, as deploy/ installs it: what an emulator might be too kind about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli
from rules.core.group import Group
from tests.e2e.moving import document as moving
from tests.e2e.moving import group, knows, remembers, rule
from tests.e2e.real_cluster import RealCluster, needs_one, real_cluster
from tests.e2e.rulefiles import document, failover
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

pytestmark = needs_one
TOLERATION = 3.0
AWAY, HOME = {"checkout": 0, "checkout-b": 1}, {"checkout": 1, "checkout-b": 0}


def settings(**clusters: RealCluster) -> dict[str, Any]:
    return {"clusters": {name: {"kubeconfig": str(one.kubeconfig)} for name, one in clusters.items()}}


async def owing_nothing(service: Service) -> list[Group]:
    groups = await service.groups()
    return groups if groups and not any(one.outbox for one in groups) else []


async def test_traffic_moves_once_and_not_early_through_a_kill_in_the_window(tmp_path: Path) -> None:
    async with real_cluster(tmp_path / "east", "base") as east:
        for service in ("checkout", "checkout-b"):
            await east.endpoints(service, ready=True)
        await east.split("checkout", "checkout-b")
        text = document(rules=failover(toleration=TOLERATION))
        reactor = Service(tmp_path / "reactor", rules=text, settings=settings(east=east))
        async with east.watched(), reactor:
            await reactor.settled(1)
            gone = await east.endpoints("checkout", ready=False)

            async def window() -> bool:
                members = [one for found in await reactor.groups() for one in found.members.values()]
                return any(one.window is not None for one in members)

            await until_told(window, "the window is open, and stored")
            await reactor.kill()
            assert east.history() == []
            await reactor.start()
            ready = asyncio.get_running_loop().time()
            await until(east.history, "the action is carried out after the restart")
            await until_told(lambda: owing_nothing(reactor), "its outcome is known")
            (at, weights) = east.seen[0]
            print(f"endpoints gone → ready again {ready - gone:.2f} s → write {at - gone:.2f} s")
            assert at - gone >= TOLERATION
            assert weights == AWAY
            await reactor.kill()
            await reactor.start()
            await east.endpoints("checkout", ready=True)
            await until(lambda: len(east.seen) > 1, "traffic comes home")
            await until_told(lambda: owing_nothing(reactor), "its outcome is known")
        assert east.history() == [AWAY, HOME]
        events = (await east.api.get(east.api.path("events", group="events.k8s.io/v1"))).body["items"]
        assert {one["regarding"]["name"] for one in events} == {"checkout"}
        assert len(events) == 2


async def test_an_api_server_that_crashes_and_comes_back_is_not_taken_for_a_dead_service(tmp_path: Path) -> None:
    async with real_cluster(tmp_path / "east", "base") as east:
        for service in ("checkout", "checkout-b"):
            await east.endpoints(service, ready=True)
        await east.split("checkout", "checkout-b")
        text = document(rules=failover())
        reactor = Service(tmp_path / "reactor", rules=text, settings=settings(east=east))
        async with reactor:
            await reactor.settled(1)
            east.control_plane.kill()

            async def noticed() -> bool:
                return await reactor.metric("reactor_watch_restarts_total", cluster="east") > 0

            await until_told(noticed, "the reactor has lost its watches")
            await asyncio.to_thread(east.control_plane.restart)
            await until_told(east.serves, "the API server has read what it stores")
            async with east.watched():
                # A change of a service without traffic is decided on: so was all that came before it.
                await east.endpoints("checkout-b", ready=False)

                async def heard() -> bool:
                    found = [one.members.get("service/east/shop/checkout-b") for one in await reactor.groups()]
                    return any(one is not None and one.status == "Unhealthy" for one in found)

                await until_told(heard, "it watches again")
                assert east.history() == []
                await east.endpoints("checkout-b", ready=True)
                await east.endpoints("checkout", ready=False)
                await until(east.history, "traffic moves")
            assert east.history() == [AWAY]


@asynccontextmanager
async def kubelets(*clusters: RealCluster) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.live()) for one in clusters]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_workload_leaves_a_cluster_that_hangs_and_is_purged_there_when_it_is_back(tmp_path: Path) -> None:
    parts = ("base", "workloads", "workloads-secrets")
    async with real_cluster(tmp_path / "one", *parts) as one, real_cluster(tmp_path / "two", *parts) as two:
        await one.run("web")
        # A Secret is never remembered: it has to be there, as an operator for secrets would have it.
        secret = {"metadata": {"name": "web-key"}, "type": "Opaque", "data": {"token": "c2VjcmV0"}}
        await two.api.post(two.api.path("secrets"), secret)
        text = moving(("one", "two"), rule("web"))
        reactor = Service(tmp_path / "reactor", rules=text, settings=settings(one=one, two=two))
        async with kubelets(two), reactor:
            async with kubelets(one):
                await knows(reactor, {"web": {"one"}}, clusters=2)
                await remembers(reactor, 4)
            one.control_plane.freeze()

            async def arrived() -> bool:
                found = await two.deployment("web")
                return found is not None and bool(found["status"].get("availableReplicas"))

            await until_told(arrived, "web runs in the other cluster")
            placed = (await two.deployment("web"))["metadata"]["generation"]
            assert await two.has("web") == {
                "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "Deployment"
            }  # fmt: skip

            async def evicted() -> bool:
                found = await group(reactor, "web")
                return found is not None and any(owed.failed.startswith("ClusterUnreachable") for owed in found.outbox)

            await until_told(evicted, "the eviction waits for its cluster")  # before, one that is back keeps its copy
            one.control_plane.thaw()

            async def purged() -> bool:
                return await one.deployment("web") is None

            await until_told(purged, "the old copy is purged")

            async def done() -> bool:
                found = await group(reactor, "web")
                return found is not None and not (found.state.moves or found.outbox)

            await until_told(done, "nothing is under way any more")
        assert (await two.deployment("web"))["metadata"]["generation"] == placed
        assert await one.has("web") == {"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"}


RULES = """apiVersion: reactor/v1
sources:
  - {name: ends, kind: EndpointsWatch, cluster: east}
  - {name: work, kind: WorkloadWatch, cluster: east, namespace: shop}
  - {name: nodes, kind: NodeWatch, cluster: east}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    recoverySeconds: 60
  - name: web
    kind: WorkloadFailover
    mode: Enforce
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]
    propagateDeps: true
    placement: {clusterAffinity: {clusterNames: [east]}}
    failover: {cluster: {purgeMode: Gracefully}}
  - name: zones
    kind: ZoneIsolation
    mode: Enforce
    cluster: east
    zones: [{name: z-a, id: a}, {name: z-b, id: b}]
    steps: [Fence, ShiftTraffic, Evacuate, CutNetwork, Verify]
    network: {provider: LabelledNetworkPolicy}
    tolerationSeconds: 300
"""


@pytest.fixture
async def east(tmp_path: Path) -> AsyncIterator[RealCluster]:
    """A route, a workload and two zones; the reactor has no rights yet."""
    async with real_cluster(tmp_path / "east") as cluster:
        await cluster.split("checkout", "checkout-b")
        await cluster.run("web")
        for zone in ("z-a", "z-b"):
            labels = {"topology.kubernetes.io/zone": zone}
            await cluster.api.post("/api/v1/nodes", {"metadata": {"name": f"n-{zone}", "labels": labels}})
        yield cluster


async def command(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command in a thread: it makes an event loop of its own."""
    done = await asyncio.to_thread(CliRunner().invoke, cli, [str(word) for word in words])
    return done.exit_code, done.stdout


async def test_check_names_the_rights_that_are_missing_and_is_quiet_with_all_parts_of_deploy(
    east: RealCluster, tmp_path: Path
) -> None:
    config, file = tmp_path / "reactor.yaml", tmp_path / "rules.yaml"
    config.write_text(yaml.safe_dump(settings(east=east)))
    file.write_text(RULES)

    async def missing() -> set[str]:
        _, printed = await command(tmp_path, "check", str(file), "-o", "json", "--against", "-c", str(config))
        live = [one["message"] for one in json.loads(printed) if one["message"].startswith("east: ")]
        rights = {message.split(" may not ")[1].split(" in ")[0] for message in live if " may not " in message}
        assert [message for message in live if " may not " not in message] == []
        return rights

    everything = await missing()
    assert everything >= {
        "get, list, watch trafficsplits.split.smi-spec.io", "patch trafficsplits.split.smi-spec.io",
        "create events.events.k8s.io", "list, watch endpointslices.discovery.k8s.io", "create pods/eviction",
        "patch nodes", "list, watch nodes", "get, list, create, delete networkpolicies.networking.k8s.io",
        "get secrets", "create, patch secrets", "create, patch, delete deployments.apps",
    }  # fmt: skip
    await east.us.grant("base", "workloads")
    left = await missing()
    assert left == {
        "get, list nodes", "patch nodes", "list, watch nodes", "patch pods", "get secrets", "create, patch secrets",
        "get, list, create, delete networkpolicies.networking.k8s.io",
    }, left  # fmt: skip
    await east.us.grant("workloads-secrets", "zone-isolation", "zone-isolation-network-policy")
    assert await missing() == set()


async def test_init_writes_rules_for_what_is_on_a_real_server(east: RealCluster, tmp_path: Path) -> None:
    await east.us.grant("base", "workloads", "zone-isolation")
    config, file = tmp_path / "reactor.yaml", tmp_path / "made.yaml"
    config.write_text(yaml.safe_dump(settings(east=east)))
    code, printed = await command(tmp_path, "init", "-c", str(config), "--output-file", str(file))
    assert code == 0, printed
    kinds = sorted(one["kind"] for one in yaml.safe_load(file.read_text())["rules"])
    assert kinds == ["TrafficFailover", "ZoneIsolation"]
    code, printed = await command(tmp_path, "check", "-o", "json", str(file))
    assert code == 0, printed
    assert {one["hint"] for one in json.loads(printed)} == {"one-witness"}, "nodes alone speak of its zones"
    for words in (("test", str(tmp_path / "made_test.yaml")), ("check", str(file), "--against", "-c", str(config))):
        code, printed = await command(tmp_path, *words)
        assert code == 0, printed
