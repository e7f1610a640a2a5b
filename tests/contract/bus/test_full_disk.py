"""A full disk under the embedded server: told in an operator's words, and over by itself once there is room."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.embedded_health import EmbeddedHealth, cause
from bus.errors import StoreUnusable, Unavailable
from bus.jetstream import JetStreamBus, provision
from bus.port import Outgoing
from tests import disk

needs_disk = pytest.mark.skipif(bool(disk.lacks()), reason=disk.lacks())
QUICK = timedelta(seconds=1)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.05)


async def stored(bus: JetStreamBus, id_: str) -> bool:
    try:
        await bus.publish(Outgoing(subjects.fact(3, "observation", "t"), b"x", id_))
    except Unavailable:
        return False
    return True


@needs_disk
async def test_the_bus_stores_again_when_a_full_disk_has_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with disk.small(tmp_path / "nats") as folder:
        async with (
            EmbeddedServer(folder) as server,
            JetStreamBus.connect(server.url, name="test", timeout=QUICK, patience=QUICK) as bus,
        ):
            await provision(bus)
            health = EmbeddedHealth(server)
            watching = asyncio.create_task(health.run())
            ended = asyncio.create_task(server.exited())
            disk.fill(folder / "filler")
            assert not await stored(bus, "while full")
            await until(lambda: health.trouble == "the bus's disk is full")
            url = server.url
            (folder / "filler").unlink()
            await until(lambda: not health.trouble)
            assert await stored(bus, "after")
            assert server.url == url
            assert not ended.done(), "a restart is not its end"
            assert not watching.done()
            watching.cancel()
            ended.cancel()
    told = [one.getMessage() for one in caplog.records if one.name == "bus.embedded_health"]
    assert told == ["the bus's disk is full", "the embedded nats-server is restarted", "the bus stores again"]


@needs_disk
async def test_a_disk_that_is_full_at_the_start_is_told_without_a_traceback(tmp_path: Path) -> None:
    with disk.small(tmp_path / "nats") as folder:
        disk.fill(folder / "filler")
        with pytest.raises(StoreUnusable, match="No space left on device"):
            async with EmbeddedServer(folder):
                pass


async def test_a_server_that_was_frozen_is_not_said_to_have_a_full_disk(tmp_path: Path) -> None:
    """A message without an answer on a connection that was lost: it says nothing of the disk."""
    async with (
        EmbeddedServer(tmp_path) as server,
        JetStreamBus.connect(server.url, name="test", timeout=QUICK, patience=QUICK) as bus,
    ):
        await provision(bus)
        os.kill(server.pid, signal.SIGSTOP)
        assert not await stored(bus, "while frozen")
        await until(lambda: not bus.connection.up.is_set())
        asked_before = asyncio.create_task(bus.ailment())
        os.kill(server.pid, signal.SIGCONT)
        await until(bus.connection.up.is_set)
        assert (await asked_before, await bus.ailment()) == ("", "")


async def test_a_server_that_answered_nothing_for_a_while_is_not_said_to_have_a_full_disk(tmp_path: Path) -> None:
    """A server that is frozen for less time than it takes to lose the connection."""
    async with (
        EmbeddedServer(tmp_path) as server,
        JetStreamBus.connect(server.url, name="test", timeout=QUICK, patience=QUICK) as bus,
    ):
        await provision(bus)
        os.kill(server.pid, signal.SIGSTOP)
        assert not await stored(bus, "while frozen")
        assert await bus.ailment() == ""
        os.kill(server.pid, signal.SIGCONT)
        assert await bus.ailment() == ""


async def test_what_other_users_of_the_machine_ask_its_monitoring_is_not_answered(server: EmbeddedServer) -> None:
    assert await EmbeddedHealth(server).look() == ""
    server.monitoring = server.monitoring.rpartition("/")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.monitoring.rpartition(":")[2]))
    writer.write(b"GET /varz HTTP/1.0\r\n\r\n")
    assert b" 404 " in (await reader.read()).partition(b"\r\n")[0]
    writer.close()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("write /x/1.blk: no space left on device", "the bus's disk is full"),
        ("write /x/1.blk: disk quota exceeded", "the bus's disk quota is used up"),
        ("open /x: read-only file system", "the bus's disk has become read-only"),
        ("JetStream is not current", "JetStream is not current"),
    ],
)
def test_a_cause_is_told_in_an_operators_words(error: str, words: str) -> None:
    assert cause(error) == words
