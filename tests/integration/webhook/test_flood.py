"""Idle connections keep no client out: limits of all and of each peer, and health on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.webhook.reception import Reception, SlowBus, reception
from tests.integration.webhook.test_tls import certificates, context
from tests.unit.webhook.builders import alert, body, counted

ONE = body(alert())
HEAD = b"POST /v1/alerts/am HTTP/1.1\r\nHost: "


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections be closed for others as soon as they are there."""
    monkeypatch.setattr("reactor.webhook.connections.GRACE_SECONDS", 0.0)


async def half_open(
    receiver: Reception, number: int, *, peer: str = "127.0.0.1", said: bytes = HEAD
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    found = []
    for _ in range(number):
        reader, writer = await receiver.connect(peer=peer)
        writer.write(said)
        found.append((reader, writer))
    return found


async def is_open(reader: asyncio.StreamReader, within: float = 0.2) -> bool:
    """True if the connection is not closed for this long."""
    try:
        async with asyncio.timeout(within):
            return bool(await reader.read(1))
    except TimeoutError:
        return True


async def are_closed(flood: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> bool:
    """Wait until all of these are closed, as they were told; False: one of them is not."""
    return not any([await is_open(reader, within=30) for reader, _ in flood])


def closed(limit: str, fate: str, listener: str = "receiver") -> float:
    return counted("reactor_connections_closed_total", listener=listener, limit=limit, fate=fate)


async def test_health_answers_while_a_thousand_half_open_connections_fill_the_receivers_port(
    receiver: Reception,
) -> None:
    async with AsyncExitStack() as stack:
        for peer in range(2, 7):
            for _, writer in await half_open(receiver, 200, peer=f"127.0.0.{peer}"):
                stack.callback(writer.close)
        for path in ("/livez", "/readyz", "/metrics"):
            async with receiver.session.get(receiver.health_url + path) as answer:
                assert answer.status == 200, path


async def test_the_port_of_health_takes_no_posts(receiver: Reception) -> None:
    async with receiver.session.post(receiver.health_url + "/v1/alerts/am", data=ONE) as answer:
        assert answer.status == 404


@pytest.mark.usefixtures("no_grace")
async def test_at_the_limit_the_oldest_half_open_connection_is_closed_and_posts_are_taken() -> None:
    before = closed("maxConnections", "half-open")
    async with reception(max_connections=20) as receiver:
        assert (await receiver.post(ONE))[0] == 200  # and the session keeps its connection
        flood = await half_open(receiver, 30)
        assert (await receiver.post(ONE))[0] == 200
        assert counted("reactor_connections", listener="receiver") == 20
        assert closed("maxConnections", "half-open") - before == 11
        assert await are_closed(flood[:11])
        assert await is_open(flood[-1][0])
        for _, writer in flood:
            writer.close()


@pytest.mark.usefixtures("no_grace")
async def test_a_peer_at_its_own_limit_closes_its_own_connections_and_no_others() -> None:
    async with reception(max_connections=100, max_connections_per_peer=10) as receiver:
        [other] = await half_open(receiver, 1, peer="127.0.0.2")
        before = closed("maxConnectionsPerPeer", "half-open")
        flood = await half_open(receiver, 50, peer="127.0.0.3")
        assert counted("reactor_connections", listener="receiver") == 11
        assert closed("maxConnectionsPerPeer", "half-open") - before == 40
        assert await is_open(other[0])
        assert (await receiver.post(ONE))[0] == 200
        for _, writer in [other, *flood]:
            writer.close()


@pytest.mark.usefixtures("no_grace")
async def test_where_all_have_sent_a_request_the_longest_idle_connection_is_closed() -> None:
    async with reception(max_connections=1) as receiver:
        assert (await receiver.post(ONE))[0] == 200  # and the session keeps its connection
        before = closed("maxConnections", "idle")
        assert (await receiver.raw(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert closed("maxConnections", "idle") - before == 1
        assert (await receiver.post(ONE))[0] == 200


@pytest.mark.usefixtures("no_grace")
async def test_a_connection_whose_post_is_being_taken_is_not_closed_for_another() -> None:
    async with reception(max_connections=1) as receiver, asyncio.TaskGroup() as group:
        slow = SlowBus(receiver.bus)
        receiver.server.bus = slow
        post = group.create_task(receiver.post(ONE))
        await slow.asked.wait()
        before = closed("maxConnections", "refused")
        assert await receiver.raw(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n") == b""
        assert closed("maxConnections", "refused") - before == 1
        slow.go.set()
        assert (await post)[0] == 200


async def test_a_connection_so_young_that_its_request_is_on_its_way_is_not_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reactor.webhook.connections.GRACE_SECONDS", 60.0)  # they stay young, however slow this is
    async with reception(max_connections=5) as receiver:
        flood = await half_open(receiver, 5)
        assert await receiver.raw(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n") == b""
        assert [await is_open(reader) for reader, _ in flood] == [True] * 5
        for _, writer in flood:
            writer.close()


@pytest.mark.usefixtures("no_grace")
async def test_a_tls_handshake_that_does_not_begin_counts(tmp_path: Path) -> None:
    await asyncio.to_thread(certificates, tmp_path)
    tls = {"tls_cert_file": tmp_path / "server.pem", "tls_key_file": tmp_path / "server.key"}
    async with reception(max_connections=10, **tls) as receiver:
        flood = await half_open(receiver, 30, said=b"")
        assert counted("reactor_connections", listener="receiver") == 10
        async with receiver.session.get(f"{receiver.url}/livez", ssl=context(tmp_path, None)) as answer:
            assert answer.status == 200
        assert await are_closed(flood[:20])
        for _, writer in flood:
            writer.close()


@pytest.mark.usefixtures("no_grace")
async def test_who_floods_the_port_of_health_closes_only_what_it_has_opened(receiver: Reception) -> None:
    before = closed("maxConnectionsPerPeer", "half-open", "health")
    url, receiver.url = receiver.url, receiver.health_url
    flood = await half_open(receiver, 150, peer="127.0.0.2")
    receiver.url = url
    async with receiver.session.get(receiver.health_url + "/livez") as answer:
        assert answer.status == 200
    assert closed("maxConnectionsPerPeer", "half-open", "health") - before == 100
    for _, writer in flood:
        writer.close()
