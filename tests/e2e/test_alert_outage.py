"""A window of an alert that ends while the bus is away acts on what Alertmanager lists afterwards, not on old news."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bus.embedded import EmbeddedServer
from tests.e2e.conftest import MakeReactor
from tests.e2e.exporter import Exporter, exporting
from tests.e2e.servers import Alertmanager, Prometheus
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.tap import tapping
from tests.e2e.test_alertmanager_path import CHECKOUT
from tests.e2e.waiting import until, until_told

TOLERATION = 4.0
OUTAGE = 8.0
RULES = f"""
apiVersion: reactor/v1
sources:
- {{name: readiness, kind: EndpointsWatch, cluster: east}}
- name: am
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: service/east/shop/{{service}}
  confirm: {{prometheus: main, query: shop_up == 1, everySeconds: 0.5}}
rules:
- name: shop
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, selector: team=shop}}
  tolerationSeconds: {TOLERATION}
"""


class Scene:
    """A reactor on a bus of its own, with an alert that fires and whose window is open."""

    def __init__(self, nats: EmbeddedServer, exporter: Exporter, service: Service) -> None:
        self.nats, self.exporter, self.service = nats, exporter, service

    @asynccontextmanager
    async def outage(self, *, killed: bool) -> AsyncIterator[None]:
        """The bus is away for OUTAGE seconds from now, in which the block runs."""
        ends = get_running_loop().time() + OUTAGE
        if killed:
            await self.nats.kill()
        else:
            os.kill(self.nats.pid, signal.SIGSTOP)
        try:
            yield
            await asyncio.sleep(ends - get_running_loop().time())
        finally:
            if killed:
                await self.nats.start()
            else:
                os.kill(self.nats.pid, signal.SIGCONT)

    async def says(self, status: str) -> bool:
        """True if the decider has this status of the service from the alert."""
        members = [group.members[CHECKOUT] for group in await self.service.groups() if CHECKOUT in group.members]
        return any("am" in one.signals and one.signals["am"].status == status for one in members)


@pytest.fixture
async def scene(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> AsyncIterator[Scene]:
    shop.split("checkout", "fallback")
    async with EmbeddedServer(tmp_path / "bus") as nats, exporting("checkout") as exporter, tapping() as tap:
        alertmanager = Alertmanager(tmp_path / "alertmanager", posts_to=[f"{tap.url}/v1/alerts/am"])
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address], alertmanagers=[alertmanager])
        service = reactor(
            RULES, bus={"url": nats.url}, prometheus={"main": {"url": prometheus.url, "timeoutSeconds": 2}},
            alertmanager={"main": {"url": alertmanager.url}},
        )  # fmt: skip
        async with alertmanager, prometheus, service:
            tap.forwards_to = service.url
            await service.settled(1)
            exporter.up["checkout"] = False
            made = Scene(nats, exporter, service)
            await until_told(lambda: made.says("Unhealthy"), "the window is open")
            assert tap.taken("checkout", "firing")
            yield made


@pytest.mark.parametrize("killed", [False, True], ids=["frozen", "killed"])
async def test_an_alert_that_ended_while_the_bus_was_away_moves_nothing(
    shop: Shop, scene: Scene, *, killed: bool
) -> None:
    async with scene.outage(killed=killed):
        scene.exporter.up["checkout"] = True
    await until_told(lambda: scene.says("Healthy"), "the recovery is proven")
    assert shop.writes("checkout") == []


@pytest.mark.parametrize("killed", [False, True], ids=["frozen", "killed"])
async def test_an_alert_that_fired_all_the_time_acts_when_the_bus_is_back(
    shop: Shop, scene: Scene, *, killed: bool
) -> None:
    async with scene.outage(killed=killed):
        pass
    back_at = get_running_loop().time()
    await until(lambda: shop.moves("checkout") == ["away"], "traffic has left")
    print(f"bus back → write {shop.writes('checkout')[0].at - back_at:.2f} s")
