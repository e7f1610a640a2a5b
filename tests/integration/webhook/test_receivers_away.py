"""Whole processes on a real nats-server: what a resolved proves after a time in which no receiver took posts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode
from bus.jetstream import JetStreamBus, provision
from bus.messages import Health, Observation, RefreshRequest
from bus.topology import FACTS
from reactor.process.app import App
from reactor.runtime.clock import Clock
from reactor.settings.model import Settings
from tests.unit.webhook.builders import alert, body, resolved

TARGET = "service/east/shop/checkout"
RULES = """
apiVersion: reactor/v1
sources:
  - {name: am, kind: AlertmanagerWebhook, target: "service/east/shop/{service}", onResolved: Healthy}
rules:
  - {name: tell, kind: Notification, match: "service/**"}
"""


class Scene:
    """A bus, an Alertmanager that lists what it is told to, and processes of a fleet."""

    def __init__(self, folder: Path, bus: JetStreamBus, nats: str, api: str) -> None:
        self._folder, self._bus, self._nats, self._api = folder, bus, nats, api
        (folder / "rules.yaml").write_text(RULES)

    @asynccontextmanager
    async def process(self, name: str) -> AsyncIterator[App]:
        settings = Settings.model_validate(
            {
                "ruleFiles": [str(self._folder / "rules.yaml")], "name": name, "receiver": {"listen": "127.0.0.1:0"},
                "bus": {"url": self._nats, "partitions": 4}, "alertmanager": {"main": {"url": self._api}},
            }
        )  # fmt: skip
        async with App(settings) as app:
            yield app

    async def recovers(self, app: App) -> datetime:
        """The alert is posted and resolved: gives since when the target is healthy."""
        async with aiohttp.ClientSession() as session:
            for one in (alert(), resolved()):
                headers = {"Content-Type": "application/json"}
                url = f"{app.receiver_url}/v1/alerts/am"
                async with session.post(url, data=body(one), headers=headers) as answer:
                    assert answer.status == 200, await answer.text()
        return _since(await self._said(Clock().now(), proven=False))

    async def healthy_since(self) -> datetime:
        """Ask as a decider does, and give since when the target is healthy by the answer."""
        return _since(await self._said(Clock().now(), proven=True))

    async def _said(self, moment: datetime, *, proven: bool) -> Observation:
        request = RefreshRequest(targets=(TARGET,), not_before=moment).model_dump_json().encode()
        async with asyncio.timeout(30):
            while True:
                if proven:
                    await self._bus.notify(subjects.refresh("am"), request)
                await asyncio.sleep(0.2)
                for delivery in await self._bus.last_of_each(FACTS, subjects.observations_of(TARGET)):
                    said: Observation = decode(delivery.body).data
                    until = said.observed_at.timestamp() + (said.valid_seconds or 0)
                    if said.status is Health.HEALTHY and (not proven or until >= moment.timestamp()):
                        return said


def _since(said: Observation) -> datetime:
    assert said.since is not None
    return said.since


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async def listed(_: web.Request) -> web.Response:
        return web.json_response([])

    app = web.Application()
    app.router.add_get("/api/v2/alerts", listed)
    runner = web.AppRunner(app)
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        nats = await stack.enter_async_context(EmbeddedServer(tmp_path / "nats"))
        bus = await stack.enter_async_context(JetStreamBus.connect(nats.url, name="test"))
        await provision(bus)
        yield Scene(tmp_path, bus, nats.url, site.name)


async def test_a_recovery_lasts_over_a_rolling_restart_and_not_over_a_time_without_receivers(scene: Scene) -> None:
    async with AsyncExitStack() as first:
        since = await scene.recovers(await first.enter_async_context(scene.process("one")))
        assert await scene.healthy_since() == since
        async with scene.process("two"):
            await first.aclose()
            assert await scene.healthy_since() == since
    back_at = Clock().now()
    async with scene.process("three"):
        assert await scene.healthy_since() > back_at
