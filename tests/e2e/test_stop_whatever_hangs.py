"""A stop takes five seconds at most, whatever hangs, and leaves nothing, also in the middle of a reload."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.topology import LEASES
from reactor.demo.kube import Fault, Hang
from reactor.runtime.deadline import GAVE_UP
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.test_stop import STOP_SECONDS
from tests.e2e.waiting import until

pytestmark = pytest.mark.alone
QUERIES = "".join(
    f"- {{name: q{n}, kind: PrometheusQuery, prometheus: slow, query: up, target: custom/q{n}, everySeconds: 1,"
    " unhealthyWhen: Absent}\n"
    for n in range(12)
)
HUNG = "- {name: hung, kind: EndpointsWatch, cluster: hung}\n"


@asynccontextmanager
async def dripping() -> AsyncIterator[str]:
    """A server that answers a byte a second, without end."""
    writers: set[asyncio.StreamWriter] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(1)
        except (OSError, EOFError):
            return

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()


def hanging_kubeconfig(folder: Path) -> Path:
    """Credentials come from a program that never ends."""
    run = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sleep",
        "args": ["300"],
        "interactiveMode": "Never",
    }
    path = folder / "hanging"
    path.write_text(
        yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
            "users": [{"name": "u", "user": {"exec": run}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
    )  # fmt: skip
    return path


async def stopped(service: Service, *codes: int) -> float:
    """Stop it, which has to end with one of these codes, and give how many seconds that took."""
    asked = get_running_loop().time()
    assert await service.stop() in codes
    return get_running_loop().time() - asked


@pytest.mark.parametrize("bus_hangs", [False, True], ids=["the bus answers", "the bus is frozen"])
async def test_a_stop_waits_for_nothing_that_hangs(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, bus_hangs: bool
) -> None:
    shop.split("checkout", "fallback")
    async with dripping() as slow:
        endpoint = {"url": slow, "timeoutSeconds": 60}
        made = reactor(
            document(ALERTS, QUERIES, rules=failover()),
            prometheus={"slow": endpoint}, alertmanager={"slow": endpoint},
        )  # fmt: skip
        settings = yaml.safe_load(made.config.read_text())
        settings["clusters"]["hung"] = {"kubeconfig": str(hanging_kubeconfig(tmp_path))}
        made.config.write_text(yaml.safe_dump(settings))
        rules = Path(settings["ruleFiles"][0])
        rules.write_text(rules.read_text().replace("sources:\n", "sources:\n" + HUNG))
        async with made as service:
            await service.settled(1)
            shop.east.faults.add(Fault(Hang(), verb="patch"))
            assert await service.post(body(firing("checkout"))) == 200
            half = await _half_a_post(service)
            await asyncio.sleep(2)  # the write, the queries and the watches hang now
            children = service.children()
            assert {_name(child) for child in children} == {"nats-server", "sleep"}
            if bus_hangs:
                os.kill(next(child for child in children if _name(child) == "nats-server"), signal.SIGSTOP)
                await asyncio.sleep(1)
            took = await stopped(service, 0, GAVE_UP)
            half.close()
            print(f"SIGTERM → end {took:.2f} s")
            assert took < STOP_SECONDS
            await until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "no child is left")
            assert "Traceback" not in service.log.read_text()


def _name(child: int) -> str:
    return Path(f"/proc/{child}/comm").read_text().strip()


async def _half_a_post(service: Service) -> asyncio.StreamWriter:
    host, port = service.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/alerts/am HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{"
    )
    await writer.drain()
    return writer


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 50])
async def test_a_stop_within_a_reload_leaves_nothing(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, milliseconds: int
) -> None:
    """No partition keeps an owner, no member is recorded: another process would wait for their leases."""
    shop.split("checkout", "fallback")
    async with EmbeddedServer(tmp_path / "nats") as server:
        rules = document(ALERTS, rules=failover())
        made = reactor(rules, bus={"url": server.url, "partitions": 16})
        async with made as service:
            await service.settled(1)
            Path(yaml.safe_load(made.config.read_text())["ruleFiles"][0]).write_text(rules + "  recoverySeconds: 7\n")
            service.process.send_signal(signal.SIGHUP)
            await until(_changing(service), "it goes by other rules")
            await asyncio.sleep(milliseconds / 1000)
            assert await stopped(service, 0) < STOP_SECONDS
        async with JetStreamBus.connect(server.url, name="look") as bus:
            left = [
                entry.key for entry in await bus.store(LEASES).entries(">") if entry.value and entry.key != "layout"
            ]
    assert left == []


def _changing(service: Service) -> Callable[[], Any]:
    """Condition that the reload has begun: the routers' share of the queue has been given back, or it is
    done already."""
    size = service.log.stat().st_size
    return lambda: service.log.stat().st_size > size
