"""Three clusters, and everything that carriers need to reach them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import aiohttp
import pytest

from bus.messages import Action, Outcome
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_api import Kubernetes
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator, LoggedWrite
from reactor.runtime.clock import Clock
from tests.contract.kube.memory import Memory
from tests.integration.actions.conftest import Connect

MEMBERS = ("member1", "member2", "member3")


@dataclass
class Scene:
    """The clusters, and the one who acts on them."""

    emulator: Emulator
    members: Mapping[str, EmulatedCluster]
    world: CarrierContext
    templates: Memory

    async def do(self, action: Action) -> Outcome:
        return await carry_out(action, self.world)

    def writes(self) -> list[LoggedWrite]:
        """Our writes, in order."""
        return self.emulator.writes.effective(manager="alert-reactor")

    def present(self, cluster: str) -> set[str]:
        """Objects in the namespace `shop` of a cluster: `ConfigMap/settings`."""
        kinds = ("configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims", "deployments", "pods")
        return {
            f"{one['kind']}/{one['metadata']['name']}"
            for kind in kinds
            for one in self.members[cluster].list(kind, "shop")
        }


@pytest.fixture
async def scene(emulator: Emulator, connected: Connect) -> AsyncIterator[Scene]:
    members = {name: emulator.cluster(name) for name in MEMBERS}
    for member in members.values():
        member.ensure_namespace("shop")
    apis: dict[str, Kubernetes] = {name: await connected(name) for name in MEMBERS}

    async def clusters(name: str) -> KubeApi:
        return apis[name] if name in apis else await Clusters({}).get(name)

    async with aiohttp.ClientSession() as http:
        remembered = Memory()
        world = CarrierContext(Clock(), clusters, {}, http, templates=remembered)
        yield Scene(emulator, members, world, remembered)
