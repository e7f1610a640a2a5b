"""The buses that must pass the contract: memory, and JetStream on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus import topology
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.port import Bus
from bus.testing.memory import MemoryBus
from bus.topology import Queue

ANSWER = timedelta(seconds=10)
"""Time limit of one request: beside other writers, a disk was seen to take more than the product's 2 s."""


@pytest.fixture
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The routers' queue, but what is not acknowledged comes again after a second: half a minute is long in a test.

    A test that needs other seconds gives them as the parameter.
    """
    again = timedelta(seconds=getattr(request, "param", 1))
    quick = replace(topology.ROUTERS, ack_wait=again, in_progress=None)
    monkeypatch.setattr(topology, "QUEUES", (quick, topology.PARKED_POSTS, topology.DELAYED, topology.EXECUTORS))
    return quick


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test's own."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def jetstream(server: EmbeddedServer, queue: Queue) -> AsyncIterator[JetStreamBus]:
    """JetStream on that server, provisioned."""
    async with JetStreamBus.connect(server.url, name="test", timeout=ANSWER, patience=3 * ANSWER) as bus:
        await provision(bus)
        yield bus


@pytest.fixture(params=["memory", "jetstream"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path, queue: Queue) -> AsyncIterator[Bus]:
    """Each bus in turn."""
    if request.param == "memory":
        yield MemoryBus(lambda: datetime(2026, 1, 1, tzinfo=UTC))
        return
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=ANSWER, patience=3 * ANSWER) as connected,
    ):
        await provision(connected)
        yield connected
