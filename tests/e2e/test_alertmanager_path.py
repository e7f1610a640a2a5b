"""From a metric that turns bad to weights that move, through a real Prometheus and a real Alertmanager, and back."""

from __future__ import annotations

from asyncio import get_running_loop
from pathlib import Path
from typing import Any

import pytest

from rules.core.group import Group
from tests.e2e.conftest import MakeReactor
from tests.e2e.exporter import exporting
from tests.e2e.servers import Alertmanager, Prometheus
from tests.e2e.shop import Shop
from tests.e2e.tap import tapping
from tests.e2e.waiting import until, until_told

TOLERATION = 2.0
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
CHECKOUT = "service/east/shop/checkout"


@pytest.mark.parametrize("reconciles", [False, True], ids=["webhook-alone", "with-the-api-beside-it"])
async def test_an_alert_moves_traffic_after_its_toleration_and_only_proof_moves_it_back(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, *, reconciles: bool
) -> None:
    shop.split("checkout", "fallback")
    async with exporting("checkout") as exporter, tapping() as tap:
        alertmanager = Alertmanager(tmp_path / "alertmanager", posts_to=[f"{tap.url}/v1/alerts/am"])
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address], alertmanagers=[alertmanager])
        settings: dict[str, Any] = {"prometheus": {"main": {"url": prometheus.url, "timeoutSeconds": 2}}}
        if reconciles:
            settings["alertmanager"] = {"main": {"url": alertmanager.url}}
        async with alertmanager, prometheus, reactor(RULES, **settings) as service:
            tap.forwards_to = service.url
            await service.settled(1)
            now = get_running_loop().time

            turned_bad = now()
            exporter.up["checkout"] = False
            await until(lambda: shop.moves("checkout") == ["away"], "traffic has left the dead service")
            (away,) = shop.writes("checkout")
            fired = tap.taken("checkout", "firing")
            assert fired is not None
            assert away.at - fired.at >= TOLERATION
            print(f"metric bad → POST {fired.at - turned_bad:.2f} s → write {away.at - fired.at:.3f} s")

            turned_good = now()
            exporter.up["checkout"] = True
            await until(lambda: shop.moves("checkout") == ["away", "home"], "traffic is back after the proof")
            ended = tap.taken("checkout", "resolved")
            assert ended is not None
            home = shop.writes("checkout")[-1]
            assert home.at > ended.at
            print(f"metric good → resolved {ended.at - turned_good:.2f} s → write {home.at - ended.at:.3f} s")

            exporter.up["checkout"] = False
            await until(lambda: shop.moves("checkout") == ["away", "home", "away"], "traffic has left again")
            await prometheus.kill()
            killed = now()
            untrue = await until(lambda: tap.taken("checkout", "resolved", after=killed), "a resolved that is not true")
            print(f"Prometheus killed → resolved {untrue.at - killed:.2f} s")
            # Not only did it arrive: it was believed to be a resolved, proof was sought for it, and none was found.
            await until_told(lambda: _waits_for_proof(service.groups), "the alert is resolved, its target Unknown")
            await until_told(
                lambda: service.metric("reactor_source_errors_total", source="am", reason="ConfirmFailed"),
                "a query for proof has failed",
            )
            assert shop.moves("checkout") == ["away", "home", "away"]

            await prometheus.start()
            await until(lambda: tap.taken("checkout", "firing", after=untrue.at), "the alert fires again")
            assert shop.moves("checkout") == ["away", "home", "away"]
            exporter.up["checkout"] = True
            await until(lambda: shop.moves("checkout")[3:] == ["home"], "traffic is back, this time with proof")


async def _waits_for_proof(ask: Any) -> bool:
    groups: list[Group] = await ask()
    return any(
        signal.status == "Unknown" and "recovery not proven" in signal.detail
        for group in groups
        for signal in group.members[CHECKOUT].signals.values()
    )
