"""JetStream over connections that swallow everything: the peer neither reads nor answers, and nothing says so."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlparse

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.errors import Unavailable
from bus.jetstream import Credentials, JetStreamBus, provision
from bus.jetstream.client import PromptTransport
from bus.port import Outgoing
from bus.topology import FACTS
from tests.chaos.proxy import Link, proxy
from tests.contract.bus.test_bus_contract import LONG, fact, read_all
from tests.integration.bus.authority import Encrypted, certificates, jetstream, tls

WRITERS = 16
"""Each has a MiB on its way: together more than the kernel takes from us for a peer that does not read."""


@pytest.fixture(params=["tcp", "tls"])
async def servers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[list[EmbeddedServer], Credentials]]:
    """Two servers, each with all that the product needs, and how one gets in."""
    folders = [tmp_path / "one", tmp_path / "two"]
    credentials = Credentials()
    if request.param == "tls":
        certificates(tmp_path)
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        credentials = Credentials(tls=lambda: context)
        pair: list[EmbeddedServer] = [Encrypted(folder, f"{tls(tmp_path)}\n{jetstream(folder)}") for folder in folders]
    else:
        pair = [EmbeddedServer(folder) for folder in folders]
    async with pair[0], pair[1]:
        for server in pair:
            async with JetStreamBus.connect(server.url, name="provision", credentials=credentials) as bus:
                await provision(bus)
        yield pair, credentials


@asynccontextmanager
async def behind(server: EmbeddedServer) -> AsyncIterator[tuple[Link, str]]:
    """A link to a server, and the URL at which that is found behind it."""
    start, _, port = server.url.rpartition(":")
    async with proxy("127.0.0.1", int(port)) as link:
        yield link, f"{start}:{link.port}"


def large(writer: int) -> list[Outgoing]:
    subject = subjects.fact(writer, "observation", "large")
    return [Outgoing(subject, b"x" * (250 << 10), f"large-{writer}-{number}") for number in range(4)]


async def test_a_server_that_takes_nothing_any_more_is_left_for_another_within_seconds(
    servers: tuple[list[EmbeddedServer], Credentials],
) -> None:
    """It is left before the patience of those who publish is over: none of them is told Unavailable."""
    (one, two), credentials = servers
    async with (
        behind(one) as (link_one, url_one),
        behind(two) as (link_two, url_two),
        JetStreamBus.connect(
            [url_one, url_two], name="test", credentials=credentials, patience=timedelta(seconds=20)
        ) as bus,
    ):
        url = bus.connection.client.connected_url
        assert url is not None
        frozen = link_one if url.port == link_one.port else link_two
        frozen.open.clear()
        writing = [asyncio.create_task(bus.publish_all(large(writer))) for writer in range(WRITERS)]
        async with asyncio.timeout(60):
            while not bus.connection.losses or not bus.connection.up.is_set():
                await asyncio.sleep(0.05)
            await asyncio.gather(*writing)
        await bus.probe()
        await bus.publish(fact(1))
        async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
            assert len(await read_all(reading, 5)) == 5


async def test_a_client_that_publishes_to_a_server_that_takes_nothing_is_told_so_in_time(tmp_path: Path) -> None:
    clock = asyncio.get_running_loop().time
    async with EmbeddedServer(tmp_path / "nats") as server, behind(server) as (link, url):
        async with JetStreamBus.connect(url, name="test", patience=timedelta(seconds=3)) as bus:
            await provision(bus)
            link.open.clear()
            writing = [asyncio.create_task(bus.publish_all(large(writer))) for writer in range(WRITERS)]
            done, waiting = await asyncio.wait(writing, timeout=LONG.total_seconds())
            assert not waiting
            assert all(isinstance(one.exception(), Unavailable) for one in done)
            began = clock()
        assert clock() - began < LONG.total_seconds(), "nobody waits for such a server when we leave"


async def test_an_attempt_to_connect_leaves_no_connection_of_the_one_before() -> None:
    """A server that accepts and never says a word is tried every two seconds, for as long as it takes."""
    ended = asyncio.Queue[bytes]()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.put_nowait(await reader.read())
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        url = urlparse(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        transport = PromptTransport(leaving=lambda: False)
        await transport.connect(url, 1024, 2)
        await transport.connect(url, 1024, 2)
        async with asyncio.timeout(LONG.total_seconds()):
            assert await ended.get() == b""
            assert ended.empty()
            transport.close()
            await transport.wait_closed()
            assert await ended.get() == b""


@pytest.mark.parametrize("leaving", [True, False])
async def test_a_server_that_hung_up_first_is_left_without_an_error(leaving: bool) -> None:
    hung_up = asyncio.Event()

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at_once = struct.pack("ii", 1, 0)  # with a reset
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.transport.abort()
        hung_up.set()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        transport = PromptTransport(leaving=lambda: leaving)
        await transport.connect(urlparse(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"), 1024, 2)
        async with asyncio.timeout(LONG.total_seconds()):
            await hung_up.wait()
            assert transport._io_reader is not None
            with suppress(ConnectionError):
                await transport._io_reader.read()  # until the hanging up is known here too
        transport.write(b"x")  # type: ignore[no-untyped-call]  # nats-py has none there
        with nullcontext() if leaving else pytest.raises(ConnectionError):
            await transport.drain()
        transport.abort()


async def test_a_client_that_waits_for_room_in_the_buffer_can_be_cancelled(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        behind(server) as (link, url),
        JetStreamBus.connect(url, name="test") as bus,
    ):
        link.open.clear()
        client = bus.connection.client

        async def fill() -> None:
            while True:
                await client.publish("nobody.listens", b"x" * (500 << 10))

        filling = asyncio.create_task(fill())
        await asyncio.wait({filling}, timeout=0.5)
        filling.cancel()
        await asyncio.wait({filling}, timeout=LONG.total_seconds())
        assert filling.cancelled()
