"""NATS of the operator's own: encrypted, with credentials, as a cluster; and what its failures do to the reactor."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.jetstream.provisioning import plan
from bus.topology import EXECUTORS, FACTS
from tests.contract.bus.servers import cluster
from tests.contract.bus.test_jetstream_faults import provision_when_elected
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told
from tests.integration.bus.authority import Encrypted, certificates, operator_mode, tls
from tests.integration.roles.conftest import is_empty, queue_is

RULES = document(ALERTS, rules=failover())
NAMES = [f"s{number:02d}" for number in range(24)]
TRY_AGAIN_SECONDS = 0.2
JUNK = "reactor.facts.9999.junk.junk"
"""A subject of a stream of ours that no consumer reads."""
TAKEOVER_SECONDS = 12.0
"""The ack_wait of the executors' queue, and two seconds."""


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A bus of its own, so that it can be hurt alone."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def small_nats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    """One that may store four megabytes."""
    monkeypatch.setattr("bus.embedded.STORE_BYTES_MAX", 4 << 20)
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


async def deliver(service: Service, name: str, codes: Counter[int]) -> None:
    """Post until it is taken, as Alertmanager does."""
    while True:
        try:
            code = await service.post(body(firing(name)))
        except aiohttp.ClientError:
            code = 0
        codes[code] += 1
        if code == 200:
            return
        await asyncio.sleep(TRY_AGAIN_SECONDS)


def each_once(shop: Shop) -> Callable[[], bool]:
    return lambda: {write.name for write in shop.writes()} == set(NAMES)


async def test_it_works_over_tls_with_a_client_certificate_and_a_creds_file(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    shop.split("checkout", "fallback")
    certificates(tmp_path)
    configuration, creds = operator_mode(tmp_path)
    async with Encrypted(tmp_path / "nats", f"{tls(tmp_path, clients=True)}\n{configuration}") as server:
        bus = {
            "url": ["tls://127.0.0.1:1", server.url], "caFile": str(tmp_path / "ca.pem"), "credentials": str(creds),
            "certFile": str(tmp_path / "client.pem"), "keyFile": str(tmp_path / "client.key"),
        }  # fmt: skip
        async with reactor(RULES, bus=bus) as service:
            assert await service.post(body(firing("checkout"))) == 200
            await until(lambda: shop.moves("checkout") == ["away"], "it is acted on")
            await until_told(lambda: acted(service), "reactor status shows it, by the same settings")
            await server.restart()
            await until_told(service.is_ready, "it has found its way back")
        assert "seed" not in service.log.read_text().lower()


async def acted(service: Service) -> bool:
    return "checkout=0 fallback=1" in await service.printed("status")


async def test_a_cluster_of_three_loses_a_server_and_nothing_else(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    shop.splits(NAMES, "fallback")
    async with cluster(tmp_path / "nats") as members:
        urls = [member.url for member in members]
        async with JetStreamBus.connect(urls, name="test") as bus:
            await provision_when_elected(bus)
            leader = (await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["cluster"]["leader"]
        async with reactor(RULES, bus={"url": urls, "replicas": 3}) as service:
            await service.settled(len(NAMES))
            codes: Counter[int] = Counter()
            for number, name in enumerate(NAMES):
                if number == len(NAMES) // 3:
                    await members[int(leader[1:])].kill()
                await deliver(service, name, codes)
            await until(each_once(shop), "every alert is acted on", within=60)
            await until_told(service.is_ready, "it is ready with two of three")
    print(f"answers: {dict(codes)}")
    assert {name: shop.moves(name) for name in NAMES} == {name: ["away"] for name in NAMES}
    assert codes[200] == len(NAMES)


@pytest.mark.alone
async def test_readiness_follows_a_bus_that_freezes_dies_and_fills_up(
    shop: Shop, reactor: MakeReactor, small_nats: EmbeddedServer
) -> None:
    shop.split("checkout", "fallback")
    nats = small_nats

    async def is_unready() -> bool:
        return not await service.is_ready()

    async with JetStreamBus.connect(nats.url, name="test") as bus:
        await unbounded(bus)
    async with reactor(RULES, bus={"url": nats.url}) as service:
        os.kill(nats.pid, signal.SIGSTOP)
        await until_told(is_unready, "it is not ready: the bus is frozen", within=6)
        await until_told(lambda: is_down(service), "its metric says so")
        os.kill(nats.pid, signal.SIGCONT)
        await until_told(service.is_ready, "it is ready again")

        await nats.kill()
        await until_told(is_unready, "it is not ready: the bus is gone", within=6)
        await nats.start()
        await until_told(service.is_ready, "it is ready again")

        async with JetStreamBus.connect(nats.url, name="test") as bus:
            await fill(bus)
            await until_told(is_unready, "it is not ready: nothing more can be stored", within=6)
            assert await service.post(body(firing("checkout"))) == 503
            await bus.connection.api(f"STREAM.PURGE.{FACTS.name}", {"filter": JUNK})
        await until_told(service.is_ready, "it is ready again")
        await deliver(service, "checkout", Counter())
        await until(lambda: shop.moves("checkout") == ["away"], "it works")


async def is_down(service: Service) -> bool:
    return await service.metric("reactor_bus_up") == 0


async def unbounded(bus: JetStreamBus) -> None:
    """Make the streams as an operator may: bounded by the server alone."""
    for step in await plan(bus):
        assert step.request is not None
        api, request = step.request
        await bus.connection.api(api, {**request, "max_bytes": -1} if "max_bytes" in request else request)


async def fill(bus: JetStreamBus) -> None:
    """Store junk up to the last bytes that the server may use."""
    for size in (100_000, 1_000, 10):
        answer = b""
        while b"error" not in answer:
            answer = (await bus.connection.client.request(JUNK, b"x" * size, timeout=30)).data


@pytest.mark.alone
async def test_what_a_killed_executor_had_in_flight_is_done_by_another_within_its_ack_wait(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer
) -> None:
    shop.splits(NAMES, "fallback")
    bus = {"url": nats.url}
    dying = reactor(RULES, name="dying", bus=bus, failpoint="executor.before-write")
    async with reactor(RULES, name="other", bus=bus) as other, dying:
        await other.settled(len(NAMES))
        codes: Counter[int] = Counter()
        for name in NAMES:
            await deliver(other, name, codes)
        await until(lambda: not dying.running, "one of them has died before it wrote")
        died = shop.east.monotonic()
        await until(each_once(shop), "every alert is acted on")
        took = max(write.at for write in shop.writes()) - died
        async with JetStreamBus.connect(nats.url, name="test") as queue:
            await queue_is(queue, EXECUTORS, is_empty)  # none is left that could be done twice
    print(f"killed → the last of its actions done by another: {took:.2f} s")
    assert took < TAKEOVER_SECONDS
    assert {name: shop.moves(name) for name in NAMES} == {name: ["away"] for name in NAMES}
