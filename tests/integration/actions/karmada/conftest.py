"""A Karmada control plane: on definitions of our own, and on the real ones where they are given."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.messages import Action, Outcome
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator, LoggedWrite
from reactor.demo.kube.crds import load_definitions
from reactor.runtime.clock import Clock
from tests.integration.actions.conftest import Connect

OURS = Path(__file__).parents[3] / "data" / "karmada" / "definitions.yaml"
REAL = os.environ.get("REACTOR_CRDS", "")


def definitions(which: str) -> list[JsonObject]:
    """Give the definitions; of the real ones, Cluster is ours: it has none."""
    ours = [*load_definitions([OURS])]
    if which == "ours":
        return ours
    real = {one["metadata"]["name"]: one for one in load_definitions(sorted(Path(REAL).glob("*.karmada.io_*.yaml")))}
    return [real.get(one["metadata"]["name"], one) for one in ours]


@dataclass
class Plane:
    """The control plane, and the one who acts on it."""

    emulator: Emulator
    karmada: EmulatedCluster
    world: CarrierContext

    async def do(self, action: Action) -> Outcome:
        return await carry_out(action, self.world)

    def writes(self) -> list[LoggedWrite]:
        return self.emulator.writes.effective(manager="alert-reactor")

    def spec(self) -> dict[str, Any]:
        """The spec of nginx' binding."""
        spec: dict[str, Any] = self.karmada.get("resourcebindings", "nginx-deployment", "shop")["spec"]
        return spec

    def clusters(self) -> dict[str, int]:
        return {one["name"]: one["replicas"] for one in self.spec().get("clusters") or []}

    def tasks(self) -> list[JsonObject]:
        return [*(self.spec().get("gracefulEvictionTasks") or [])]


DIVIDED: JsonObject = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
}


def binding(**spec: Any) -> JsonObject:
    """The binding of shop/nginx, with three replicas on member1 and two on member2."""
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "nginx"}
    clusters = [{"name": "member1", "replicas": 3}, {"name": "member2", "replicas": 2}]
    return {
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "nginx-deployment", "namespace": "shop"},
        "spec": {"resource": resource, "replicas": 5, "clusters": clusters, "placement": DIVIDED, **spec},
    }  # fmt: skip


@pytest.fixture(
    params=["ours", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="REACTOR_CRDS names no folder"))]
)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def _agreeing(karmada: EmulatedCluster) -> None:
    """Be a scheduler that leaves everything as it is. What a real one does: tests/contract/karmada."""
    while True:
        for plural in ("resourcebindings", "clusterresourcebindings"):
            for one in karmada.list(plural):
                metadata = one["metadata"]
                status = {"status": {"schedulerObservedGeneration": metadata["generation"]}}
                if (one.get("status") or {}).get("schedulerObservedGeneration") != metadata["generation"]:
                    karmada.patch(plural, metadata["name"], status, metadata.get("namespace", ""), status=True)
        await asyncio.sleep(0.01)


@pytest.fixture
async def plane(emulator: Emulator, connected: Connect, which: str) -> AsyncIterator[Plane]:
    karmada = emulator.cluster("karmada", crds=definitions(which))
    karmada.ensure_namespace("shop")
    api = await connected("karmada")

    async def clusters(name: str) -> KubeApi:
        return api if name == "karmada" else await Clusters({}).get(name)

    working = asyncio.create_task(_agreeing(karmada))
    async with aiohttp.ClientSession() as http:
        clock = Clock()
        yield Plane(emulator, karmada, CarrierContext(clock, clusters, {}, http, karmada=ControlPlane(clusters, clock)))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
