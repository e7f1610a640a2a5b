"""No failback is lost for good: real Alertmanagers die while alerts fire, and come back empty."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.messages import Observation, RefreshRequest
from bus.topology import ALERTS
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.alerts.look_requests import serve
from reactor.clients.alertmanager_api import Alertmanager as Client
from reactor.clients.prometheus_api import Prometheus as Queries
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from reactor.settings.receiver_settings import Receiver
from reactor.settings.server_settings import Endpoint
from reactor.webhook.receiver import listening
from reactor.webhook.webhook_server import WebhookServer
from tests.e2e.exporter import Exporter, exporting
from tests.e2e.servers import Alertmanager, Prometheus
from tests.integration.webhook.test_alertmanager import Heard, ready, route
from tests.ports import free_port
from tests.unit.webhook.builders import SHOP, source

SOURCE = source(
    matchers='alertname="ShopDown"', confirm={"prometheus": "main", "query": "shop_up == 1", "everySeconds": 0.5}
)
SECONDS = timedelta(seconds=1)


class Api:
    """The client of a real Alertmanager, which a test can keep from being asked."""

    def __init__(self, server: Alertmanager) -> None:
        self.client = Client(server.name, Endpoint.model_validate({"url": server.url}))
        self.open = True

    async def alerts(self) -> Sequence[Mapping[str, Any]]:
        if not self.open:
            raise Retryable("not yet")
        return await self.client.alerts()


class Scene:
    """A pair of Alertmanagers that gossip, a Prometheus, and a keeper that hears them."""

    def __init__(self, folder: Path, exporter: Exporter, absent_for: timedelta) -> None:
        self.clock, self.heard, self.exporter = Clock(), Heard(), exporter
        self._absent_for = absent_for
        self.receiver = WebhookServer(
            Receiver(listen="127.0.0.1:0"), sources=["am"], bus=None, ready=ready, clock=self.clock
        )
        self._folder = folder

    async def begin(self, stack: AsyncExitStack) -> None:
        url = await stack.enter_async_context(listening(self.receiver))
        nats = await stack.enter_async_context(EmbeddedServer(self._folder / "nats"))
        self.bus = await stack.enter_async_context(JetStreamBus.connect(nats.url, name="test"))
        await provision(self.bus)
        self.receiver.bus = self.bus
        one, two = free_port(), free_port()
        self.pair = [
            Alertmanager(self._folder / f"am-{own}", posts_to=[f"{url}/v1/alerts/am"], gossip=own, peers=[peer])
            for own, peer in ((one, two), (two, one))
        ]
        for alertmanager in self.pair:
            await stack.enter_async_context(alertmanager)
        self.prometheus = Prometheus(
            self._folder / "prometheus", scrapes=[self.exporter.address], alertmanagers=self.pair
        )
        await stack.enter_async_context(self.prometheus)
        self.queries = Queries("main", Endpoint.model_validate({"url": self.prometheus.url, "timeoutSeconds": 2}))
        self.apis = {alertmanager.name: Api(alertmanager) for alertmanager in self.pair}
        for api in self.apis.values():
            stack.push_async_callback(api.client.close)
        await self._keep(stack)

    async def _keep(self, stack: AsyncExitStack) -> None:
        async def query(_: str, promql: str) -> list[Mapping[str, str]]:
            return [sample.labels for sample in await self.queries.query(promql)]

        self.lifecycle = await stack.enter_async_context(
            AlertLifecycle(
                sources=[SOURCE], store=self.bus.store(ALERTS), clock=self.clock, tell=self.heard.tell, query=query,
                alertmanagers=self.apis, reconcile_every=SECONDS / 2, absent_for=self._absent_for,
                unlisted_for=self._absent_for + SECONDS,
            )
        )  # fmt: skip
        await serve(self.bus, self.lifecycle, stack)

        async def sweep() -> None:
            while True:
                await self.lifecycle.sweep()
                await asyncio.sleep(0.1)

        for loop in (route(self.bus, self.lifecycle), sweep()):
            task = asyncio.create_task(loop)
            stack.push_async_callback(asyncio.wait, [task])
            stack.callback(task.cancel)

    async def wipe(self) -> None:
        """Both Alertmanagers die at once, and come back without their stores."""
        for alertmanager in self.pair:
            await alertmanager.kill()
        for alertmanager in self.pair:
            shutil.rmtree(alertmanager.folder / "data", ignore_errors=True)

    async def ask(self, within: float = 30) -> Observation | None:
        """Ask for fresh evidence as a decider does; None: none comes within so many seconds."""
        while not self.heard.said.empty():
            self.heard.said.get_nowait()
        now = self.clock.now()
        request = RefreshRequest(targets=(SHOP.target,), not_before=now)
        await self.bus.notify(subjects.refresh("am"), request.model_dump_json().encode())
        try:
            async with asyncio.timeout(within):
                while True:
                    said = await self.heard.said.get()
                    if said.observed_at + timedelta(seconds=said.valid_seconds or 0) >= now:
                        return said
        except TimeoutError:
            return None


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with _scene(tmp_path) as made:
        yield made


@pytest.fixture
async def patient_scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """No alert runs out while busy Alertmanagers start again."""
    async with _scene(tmp_path, absent_for=60 * SECONDS) as made:
        yield made


@asynccontextmanager
async def _scene(folder: Path, absent_for: timedelta = 3 * SECONDS) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        exporter = await stack.enter_async_context(exporting("checkout"))
        made = Scene(folder, exporter, absent_for)
        await made.begin(stack)
        yield made


@pytest.mark.alone
@pytest.mark.parametrize("polled", [True, False], ids=["listed", "never-listed"])
async def test_an_alert_whose_alertmanagers_come_back_empty_recovers_by_the_query(
    scene: Scene, *, polled: bool
) -> None:
    for api in scene.apis.values():
        api.open = polled
    scene.exporter.up["checkout"] = False
    await scene.heard.until("Unhealthy")
    await asyncio.sleep(1)  # more than one poll, if it may
    await scene.wipe()
    scene.exporter.up["checkout"] = True
    for alertmanager in scene.pair:
        await alertmanager.start()
    for api in scene.apis.values():
        api.open = True
    back_at = scene.clock.now()
    assert (await scene.heard.until("Unknown")).observed_at - back_at < 8 * SECONDS
    said = await scene.heard.until("Healthy")
    assert said.observed_at - back_at < 10 * SECONDS
    assert said.source == "am"


async def test_an_alert_whose_alertmanagers_come_back_empty_stays_while_it_fires(patient_scene: Scene) -> None:
    scene = patient_scene
    scene.exporter.up["checkout"] = False
    first = await scene.heard.until("Unhealthy")
    await scene.wipe()
    for alertmanager in scene.pair:
        await alertmanager.start()
    async with asyncio.timeout(60):
        while not await scene.pair[0].firing():
            await asyncio.sleep(0.1)
    said = await scene.ask()
    assert said is not None
    assert (said.status, said.since) == ("Unhealthy", first.observed_at)


async def test_only_what_is_listed_now_is_said_to_fire(scene: Scene) -> None:
    scene.exporter.up["checkout"] = False
    await scene.heard.until("Unhealthy")
    asked_at = scene.clock.now()
    said = await scene.ask()
    assert said is not None
    assert said.observed_at >= asked_at
    await scene.wipe()
    assert await scene.ask(within=2) is None
