"""Whole processes on a real nats-server: alerts after a time without receivers, and after the bus was wiped."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode
from bus.errors import Unavailable
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
  - name: am
    kind: AlertmanagerWebhook
    target: "service/east/shop/{service}"
    matchers: 'alertname="Down"'
    onResolved: Healthy
    refreshSeconds: 300
    staleSeconds: 900
rules:
  - {name: tell, kind: Notification, match: "service/**"}
"""


class Scene:
    """A bus, an Alertmanager that lists what it is told to, and processes of a fleet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "rules.yaml").write_text(RULES)
        self.lists: list[dict[str, Any]] = []
        self.answers_after = 0.0
        """Seconds that the Alertmanager takes for its answer."""

    async def begin(self, stack: AsyncExitStack) -> None:
        app = web.Application()
        app.router.add_get("/api/v2/alerts", self._listed)
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._api = site.name
        self._nats = await stack.enter_async_context(EmbeddedServer(self._folder / "nats"))
        self._bus = await stack.enter_async_context(JetStreamBus.connect(self._nats.url, name="test"))
        await provision(self._bus)

    async def _listed(self, _: web.Request) -> web.Response:
        await asyncio.sleep(self.answers_after)
        return web.json_response([one | {"status": {"state": "active"}} for one in self.lists])

    @asynccontextmanager
    async def process(self, name: str) -> AsyncIterator[App]:
        settings = Settings.model_validate(
            {
                "ruleFiles": [str(self._folder / "rules.yaml")], "name": name, "receiver": {"listen": "127.0.0.1:0"},
                "bus": {"url": self._nats.url, "partitions": 4}, "alertmanager": {"main": {"url": self._api}},
            }
        )  # fmt: skip
        async with App(settings) as app:
            yield app

    async def post(self, app: App, *alerts: dict[str, Any]) -> None:
        """One after the other."""
        async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
            for one in alerts:
                async with session.post(f"{app.receiver_url}/v1/alerts/am", data=body(one)) as answer:
                    assert answer.status == 200, await answer.text()

    async def recovers(self, app: App) -> datetime:
        """The alert is posted and resolved: gives since when the target is healthy."""
        await self.post(app, alert(), resolved())
        return _since(await self._said(Clock().now(), proven=False))

    async def wipe(self) -> None:
        """The server comes back without all that reactors keep on the bus."""
        await self._nats.stop()
        shutil.rmtree(self._nats.folder / "store")
        await self._nats.start()

    async def statuses(self) -> dict[str, str]:
        """Newest statuses on the bus, by service."""
        try:
            said = [decode(one.body).data for one in await self._bus.last_of_each(FACTS, f"{subjects.ROOT}.facts.>")]
        except Unavailable:
            return {}
        return {one.target.rpartition("/")[2]: one.status for one in said if isinstance(one, Observation)}

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
    scene = Scene(tmp_path)
    async with AsyncExitStack() as stack:
        await scene.begin(stack)
        yield scene


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


async def test_a_process_that_lives_through_a_wiped_bus_says_at_once_which_alerts_fire(scene: Scene) -> None:
    scene.lists = [alert()]
    async with scene.process("one"):
        async with asyncio.timeout(30):
            while await scene.statuses() != {"checkout": "Unhealthy"}:  # what is waited for has no event of its own
                await asyncio.sleep(0.1)
        scene.lists = [alert(), alert("f2", service="cart")]
        await scene.wipe()
        async with asyncio.timeout(20):
            while await scene.statuses() != {"checkout": "Unhealthy", "cart": "Unhealthy"}:
                await asyncio.sleep(0.1)


async def test_a_start_on_an_empty_bus_waits_for_what_alertmanager_lists(scene: Scene) -> None:
    """Other sources of the process speak afterwards: alone they might bring traffic back."""
    scene.lists, scene.answers_after = [alert()], 1.0
    async with scene.process("one"):
        assert await scene.statuses() == {"checkout": "Unhealthy"}


async def test_a_start_on_an_empty_bus_waits_two_seconds_at_most(scene: Scene) -> None:
    scene.lists, scene.answers_after = [alert()], 6.0
    began = asyncio.get_running_loop().time()
    async with scene.process("one"):
        assert await scene.statuses() == {}
        assert asyncio.get_running_loop().time() - began < 6
