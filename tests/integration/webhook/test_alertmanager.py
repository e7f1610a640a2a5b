"""A real Alertmanager posts to the receiver, over a real bus, and a keeper speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.embedded import EmbeddedServer
from bus.envelope import decode
from bus.jetstream import JetStreamBus, provision
from bus.messages import Observation
from bus.port import Bus
from bus.topology import ALERTS, ROUTERS
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.clients.alertmanager_api import Alertmanager
from reactor.runtime.clock import Clock
from reactor.settings.receiver_settings import Receiver
from reactor.settings.server_settings import Endpoint
from reactor.webhook.receiver import listening
from reactor.webhook.webhook_server import WebhookServer
from tests.e2e.servers import first_on_path
from tests.ports import free_port
from tests.unit.webhook.builders import counted, source

BINARY = first_on_path("alertmanager", "prometheus-alertmanager")
pytestmark = pytest.mark.skipif(BINARY is None, reason="no prometheus-alertmanager on PATH")

CONFIG = """
route: {{receiver: team.ops, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1m}}
receivers:
  - name: team.ops
    webhook_configs:
      - url: {url}
        http_config: {{authorization: {{credentials_file: {token}}}, follow_redirects: false}}
"""


class Heard:
    """Observations that were reported, to be waited for."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[Observation] = asyncio.Queue()

    async def tell(self, observations: Sequence[Observation]) -> None:
        for observation in observations:
            self.said.put_nowait(observation)

    async def until(self, status: str) -> Observation:
        async with asyncio.timeout(60):
            while (said := await self.said.get()).status != status:
                continue
        return said


@asynccontextmanager
async def alertmanager(folder: Path, url: str, token: Path) -> AsyncIterator[str]:
    """Run one; gives its URL when it is ready."""
    (folder / "am.yml").write_text(CONFIG.format(url=url, token=token))
    own = f"127.0.0.1:{free_port()}"
    with (folder / "am.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(BINARY), f"--config.file={folder}/am.yml", f"--storage.path={folder}/am",
            f"--web.listen-address={own}", "--cluster.listen-address=", stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(60):
            while not await answers(session, f"http://{own}/-/ready"):
                await asyncio.sleep(0.05)
        yield f"http://{own}"
    finally:
        process.kill()
        await process.wait()


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def route(bus: Bus, lifecycle: AlertLifecycle) -> None:
    async with bus.work(ROUTERS, batch=10) as work:
        while True:
            deliveries = await work.next(timedelta(seconds=1))
            for delivery in deliveries:
                await lifecycle.take_post(decode(delivery.body).data)
            await work.ack(deliveries)


async def fires(api: str, *, ends_at: datetime | None = None) -> None:
    """Say it to Alertmanager, as Prometheus does."""
    alert: dict[str, Any] = {"labels": {"alertname": "Down", "service": "checkout"}}
    if ends_at:
        alert["endsAt"] = ends_at.isoformat()
    async with aiohttp.ClientSession() as session, session.post(f"{api}/api/v2/alerts", json=[alert]) as answer:
        answer.raise_for_status()


async def nothing(*_: object) -> Sequence[dict[str, str]]:
    return []


async def ready() -> Sequence[str]:
    return []


async def test_a_real_alertmanager_is_heard_and_tries_again_after_503(tmp_path: Path) -> None:
    clock, heard = Clock(), Heard()
    token = tmp_path / "token"
    token.write_text("s3cret")
    settings = Receiver(listen="127.0.0.1:0", bearer_token_files=(token,))
    server = WebhookServer(settings, sources=["am"], bus=None, ready=ready, clock=clock)
    async with (
        EmbeddedServer(tmp_path / "nats") as nats,
        JetStreamBus.connect(nats.url, name="test", timeout=timedelta(seconds=10)) as bus,
        listening(server) as url,
        alertmanager(tmp_path, f"{url}/v1/alerts/am", token) as api,
    ):
        await provision(bus)
        before = counted("reactor_webhook_posts_total", source="am", code="503")
        await fires(api)
        while counted("reactor_webhook_posts_total", source="am", code="503") == before:
            await asyncio.sleep(0.01)  # it posts while the receiver is still starting up
        server.bus = bus
        async with AlertLifecycle(
            sources=[source(matchers='alertname="Down"')], store=bus.store(ALERTS), clock=clock, tell=heard.tell,
            query=nothing, alertmanagers={},
        ) as lifecycle:  # fmt: skip
            routing = asyncio.create_task(route(bus, lifecycle))
            said = await heard.until("Unhealthy")
            assert said.target == "service/east/shop/checkout"
            await fires(api, ends_at=clock.now())
            assert (await heard.until("Unknown")).resolved
            routing.cancel()
            await asyncio.gather(routing, return_exceptions=True)


async def test_a_lost_firing_and_a_lost_resolved_heal_against_a_real_api(tmp_path: Path) -> None:
    clock, heard = Clock(), Heard()
    token = tmp_path / "token"
    token.write_text("s3cret")
    async with (
        EmbeddedServer(tmp_path / "nats") as nats,
        JetStreamBus.connect(nats.url, name="test", timeout=timedelta(seconds=10)) as bus,
        alertmanager(tmp_path, "http://127.0.0.1:1/", token) as api,
    ):
        await provision(bus)
        await fires(api)
        main = Alertmanager("main", Endpoint.model_validate({"url": api}))
        async with AlertLifecycle(
            sources=[source(matchers='alertname="Down"', onResolved="Healthy")], store=bus.store(ALERTS), clock=clock,
            tell=heard.tell, query=nothing, alertmanagers={"main": main}, reconcile_every=timedelta(0),
            absent_for=timedelta(0),
        ) as lifecycle:  # fmt: skip
            await lifecycle.sweep()
            await heard.until("Unhealthy")
            await fires(api, ends_at=clock.now())
            async with asyncio.timeout(60):
                while heard.said.empty():
                    await lifecycle.sweep()
            assert (await heard.until("Unknown")).resolved
        await main.close()
