"""One garden for all tests, and a Shoot for each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_port import KubeApi
from reactor.settings.server_settings import ClusterSettings
from tests.gardener.garden import CORE, MERGE, NAMESPACE, Garden, shoot, why_not

REQUIRED = os.environ.get("REACTOR_REQUIRE_GARDENER", "") == "1"


@pytest.fixture(scope="session")
def garden() -> Iterator[Garden]:
    """A real one, started once."""
    if why := why_not():
        pytest.fail(why) if REQUIRED else pytest.skip(why)
    running = Garden()
    try:
        running.start()
        yield running
    finally:
        running.stop()


@dataclass
class Shoot:
    """One Shoot in the garden, as its owner and Gardener's controllers see it."""

    garden: Garden
    name: str
    api: KubeApi

    @property
    def path(self) -> str:
        return f"{CORE}/namespaces/{NAMESPACE}/shoots/{self.name}"

    def read(self) -> Any:
        return self.garden.server.request("GET", self.path)

    def patch(self, change: Any) -> None:
        self.garden.server.request("PATCH", self.path, change, MERGE)


@pytest.fixture
async def prod(garden: Garden, request: pytest.FixtureRequest) -> AsyncIterator[Shoot]:
    """A Shoot of this test, made as its owner would, and the reactor's connection to the garden."""
    clusters = Clusters({"garden": ClusterSettings(kubeconfig=garden.server.kubeconfig)})
    name = f"p{abs(hash(request.node.name)) % 10**8}"  # eleven characters: project and Shoot have 21 together
    path = f"{CORE}/namespaces/{NAMESPACE}/shoots"
    garden.server.request("POST", path, shoot(name))
    done = {
        "type": "Create", "state": "Succeeded", "progress": 100, "description": "created",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    garden.server.request("PATCH", f"{path}/{name}/status", {"status": {"lastOperation": done}}, MERGE)
    try:
        yield Shoot(garden, name, await clusters.get("garden"))
    finally:
        await clusters.close()
