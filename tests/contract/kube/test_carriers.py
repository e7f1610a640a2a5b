"""Placing, evicting and purging on every API server there is: what carriers rely on must be so on real ones, too."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.messages import Action, Outcome, WorkloadRef
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.clients.kubernetes_api import connect
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings
from tests.contract.kube.memory import Memory, remembered
from tests.kube.api import Api, Server
from tests.kube.deployed import kubeconfig
from tests.unit.actions.workload.builders import cancel, evict, place, purge


def reached(server: Server, folder: Path) -> Path:
    """Say how to reach the server, for the product's own client."""
    if server.tier == "existing":
        return Path(os.environ["KUBECONFIG"])
    if "Authorization" not in server.headers and server.tier != "sim":
        pytest.skip("this server takes a client certificate, which a kubeconfig of ours would have to copy")
    return kubeconfig(server, folder / "kubeconfig")


@dataclass
class Scene:
    """One cluster to act on, and how."""

    kube: Api
    world: CarrierContext
    ref: WorkloadRef

    async def do(self, action: Action) -> Outcome:
        return await carry_out(action, self.world)

    async def nginx(self) -> Any:
        return (await self.kube.get(self.kube.path("deployments", "nginx", "apps/v1"))).body


@pytest.fixture
async def scene(kube: Api, tmp_path: Path) -> AsyncIterator[Scene]:
    api = await connect("it", ClusterSettings(kubeconfig=reached(kube.server, tmp_path)))

    async def clusters(name: str) -> KubeApi:
        return api

    async with aiohttp.ClientSession() as http:
        world = CarrierContext(Clock(), clusters, {}, http, templates=Memory(remembered(kube.namespace)))
        yield Scene(kube, world, WorkloadRef(namespace=kube.namespace, kind="Deployment", name="nginx"))
    await api.close()


async def test_a_placement_arrives_whole_and_again_writes_nothing(scene: Scene) -> None:
    outcome = await scene.do(place({"it": 2}, workload=scene.ref))
    assert (outcome.status, outcome.wrote) == ("Done", True), outcome.detail
    first = await scene.nginx()
    assert first["spec"]["replicas"] == 2
    again = await scene.do(place({"it": 2}, workload=scene.ref))
    assert (again.status, again.wrote) == ("Done", False), again.detail
    assert (await scene.nginx())["metadata"]["generation"] == first["metadata"]["generation"]


async def test_a_new_version_is_taken_over_and_the_fields_of_others_stay(scene: Scene) -> None:
    await scene.do(place({"it": 2}, workload=scene.ref))
    path = scene.kube.path("deployments", "nginx", "apps/v1")
    theirs = {"metadata": {"annotations": {"theirs": "1"}}, "spec": {"paused": True, "replicas": 9}}
    await scene.kube.patch(path, theirs, fieldManager="somebody")
    outcome = await scene.do(place({"it": 3}, workload=scene.ref, generation=2))
    assert (outcome.status, outcome.wrote) == ("Done", True), outcome.detail
    found = await scene.nginx()
    assert (found["spec"]["replicas"], found["spec"]["paused"]) == (3, True)
    assert found["metadata"]["annotations"]["theirs"] == "1"


async def test_a_copy_is_marked_unmarked_and_removed(scene: Scene) -> None:
    await scene.do(place({"it": 1}, workload=scene.ref))
    assert (await scene.do(evict("it", workload=scene.ref, generation=2))).wrote
    assert "reactor/evicting" in (await scene.nginx())["metadata"]["annotations"]
    assert (await scene.do(cancel("it", workload=scene.ref, generation=3))).wrote
    assert "reactor/evicting" not in (await scene.nginx())["metadata"]["annotations"]
    for wrote in (True, False):
        outcome = await scene.do(purge("it", workload=scene.ref, generation=4))
        assert (outcome.status, outcome.wrote) == ("Done", wrote), outcome.detail
    assert (await scene.nginx())["code"] == 404


async def test_a_namespace_that_is_missing_is_told_from_a_kind_that_is(scene: Scene) -> None:
    elsewhere = f"missing-{secrets.token_hex(4)}"
    scene.world = CarrierContext(
        scene.world.clock, scene.world.clusters, {}, scene.world.http, templates=Memory(remembered(elsewhere))
    )
    ref = scene.ref.model_copy(update={"namespace": elsewhere})
    outcome = await scene.do(place({"it": 1}, workload=ref))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "NamespaceMissing", False), outcome.detail
    odd = ref.model_copy(update={"kind": "Nothing", "api_version": "nowhere.invalid/v1"})
    scene.world = CarrierContext(
        scene.world.clock, scene.world.clusters, {}, scene.world.http,
        templates=Memory({odd: {"apiVersion": odd.api_version, "kind": odd.kind, "metadata": {"name": "nginx"}}}),
    )  # fmt: skip
    assert (await scene.do(place({"it": 1}, workload=odd))).reason == "KindMissing"


async def test_a_purge_leaves_alone_what_has_changed_since_it_was_read(scene: Scene) -> None:
    await scene.do(place({"it": 1}, workload=scene.ref))
    metadata = (await scene.nginx())["metadata"]
    api = await scene.world.clusters("it")
    path = scene.kube.path("deployments", "nginx", "apps/v1")
    for uid, version in ((metadata["uid"], "1"), ("another", metadata["resourceVersion"])):
        with pytest.raises(Exception, match="changed since it was read"):
            await api.delete(path, uid=uid, resource_version=version)
    assert (await scene.nginx())["metadata"]["uid"] == metadata["uid"]
