"""A cluster that misbehaves on order, and real clients of it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import stamina
import yaml

from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings as ClusterSettings

Connect = Callable[[str], Awaitable[Kubernetes]]


@pytest.fixture(autouse=True)
def no_backoff() -> Iterator[None]:
    """As many tries as ever, without the waits between them."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator(clock=Clock().now) as running:
        yield running


@pytest.fixture
def east(emulator: Emulator) -> EmulatedCluster:
    return emulator.cluster("east")


@pytest.fixture
async def connected(emulator: Emulator, tmp_path: Path) -> AsyncIterator[Connect]:
    """Another client of a cluster, as another process would have it."""
    async with AsyncExitStack() as open_clients:

        async def another(name: str) -> Kubernetes:
            path = tmp_path / f"{name}.kubeconfig"
            document = {
                "apiVersion": "v1", "kind": "Config", "current-context": name,
                "clusters": [{"name": name, "cluster": {"server": emulator.url(name)}}],
                "users": [{"name": "us", "user": {}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": "us"}}],
            }  # fmt: skip
            path.write_text(yaml.safe_dump(document))
            api = await connect(name, ClusterSettings(kubeconfig=path))
            open_clients.push_async_callback(api.close)
            return api

        yield another


@pytest.fixture
async def api(east: EmulatedCluster, connected: Connect) -> Kubernetes:
    return await connected("east")
