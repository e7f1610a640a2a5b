"""A cluster that misbehaves on order, and our client connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings as ClusterSettings


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    """Clusters on loopback."""
    async with Emulator(clock=Clock().now) as running:
        yield running


@pytest.fixture
def east(emulator: Emulator) -> EmulatedCluster:
    """A cluster that says in a bookmark every 0.2 s that it is still there."""
    return emulator.cluster("east", bookmark_seconds=0.2)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    """Write a kubeconfig file for a URL."""

    def write(url: str, **user: Any) -> Path:
        path = tmp_path / "kubeconfig"
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "east",
            "clusters": [{"name": "east", "cluster": {"server": url}}],
            "users": [{"name": "us", "user": user}],
            "contexts": [{"name": "east", "context": {"cluster": "east", "user": "us"}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(document))
        return path

    return write


@pytest.fixture
async def api(emulator: Emulator, east: EmulatedCluster, kubeconfig: Callable[..., Path]) -> AsyncIterator[Kubernetes]:
    """Our client of that cluster."""
    connected = await connect("east", ClusterSettings(kubeconfig=kubeconfig(emulator.url("east"))))
    yield connected
    await connected.close()
