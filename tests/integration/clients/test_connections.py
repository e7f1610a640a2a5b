"""Number of connections to a cluster, and the end of those that are not needed any more."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from kubernetes.aio.client import ApiClient

from reactor.clients import credential_loading
from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.demo.kube import EmulatedCluster, Fault, StatusFault
from reactor.runtime import telemetry
from reactor.settings.server_settings import ClusterSettings as ClusterSettings

WATCHES = 130
"""More than an HTTP client's usual pool has connections."""


async def open_watches(api: Kubernetes, stack: AsyncExitStack, count: int) -> None:
    """Open so many watches, and leave them open until the stack is closed."""
    query = {"watch": "true", "timeoutSeconds": "60"}
    streams = [api.stream("/api/v1/services", query, idle_seconds=60) for _ in range(count)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(stack.enter_async_context(stream) for stream in streams))


def open_watches_of(cluster: str) -> float:
    return telemetry.REGISTRY.get_sample_value("reactor_open_watches", {"cluster": cluster}) or 0


async def test_watches_leave_connections_for_reads_probes_and_writes(api: Kubernetes, east: EmulatedCluster) -> None:
    async with AsyncExitStack() as stack:
        await open_watches(api, stack, WATCHES)
        assert open_watches_of("east") == WATCHES
        async with asyncio.timeout(30):
            await api.get("/api/v1")
            assert await api.status("/readyz", seconds=3) == 200
            await api.create("/api/v1/namespaces", {"metadata": {"name": "made"}})
            assert (await api.page("/api/v1/namespaces", {})).items
    assert open_watches_of("east") == 0


async def test_clients_whose_credentials_were_renewed_are_not_kept(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_loading, "REST_SECONDS_MAX", 0)
    before = clients()  # one for each purpose
    for _ in range(3):
        east.faults.add(Fault(StatusFault(401), count=1))
        await api.get("/version")
    assert clients() == before


def clients() -> int:
    """Number of the official client's connections."""
    gc.collect()
    return sum(isinstance(found, ApiClient) for found in gc.get_objects())


@pytest.fixture
def full() -> Iterator[str]:
    """The URL of a server that takes no connection: its queue is full, as behind a firewall that drops packets."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_a_server_that_takes_no_connection_is_given_up_after_three_seconds(
    full: str, kubeconfig: Callable[..., Path]
) -> None:
    api = await connect("east", ClusterSettings(kubeconfig=kubeconfig(full)))
    async with asyncio.timeout(30):
        with pytest.raises(ApiUnavailable, match="got no answer"):
            await api.get("/version")
    await api.close()
