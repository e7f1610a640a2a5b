"""From a metric that turns bad to weights that move, asking a real Prometheus, and back."""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from pathlib import Path

from bus.messages import Health
from rules.core.member import Member
from tests.e2e.conftest import MakeReactor
from tests.e2e.exporter import exporting
from tests.e2e.rulefiles import document, failover
from tests.e2e.servers import Prometheus
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

TOLERATION = 2.0
QUERY = """
- name: down
  kind: PrometheusQuery
  prometheus: main
  query: shop_up == 0
  everySeconds: 0.3
  target: service/east/shop/{service}
"""
RULES = document(QUERY, rules=failover(toleration=TOLERATION))


async def checkout(service: Service) -> Member | None:
    """Stored member `checkout`; None: not stored."""
    return next((group.members.get("service/east/shop/checkout") for group in await service.groups()), None)


async def until_unknown(service: Service) -> None:
    async def unknown() -> bool:
        member = await checkout(service)
        return member is not None and member.status is Health.UNKNOWN

    await until_told(unknown, "the target is Unknown")


async def test_a_query_moves_traffic_and_a_dead_prometheus_moves_nothing(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    shop.split("checkout", "fallback")
    async with exporting("checkout") as exporter:
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address])
        async with prometheus, reactor(RULES, prometheus={"main": {"url": prometheus.url}}) as service:
            await service.settled(1)
            exporter.up["checkout"] = False
            turned_bad = get_running_loop().time()
            await until(lambda: shop.moves("checkout") == ["away"], "traffic has left the dead service")
            (away,) = shop.writes("checkout")
            assert away.at - turned_bad >= TOLERATION
            print(f"metric bad → write {away.at - turned_bad:.2f} s, {TOLERATION:g} s of them tolerated")

            await prometheus.kill()
            exporter.up["checkout"] = True  # it has recovered, and no request shows it
            await until_unknown(service)
            assert shop.moves("checkout") == ["away"]

            exporter.up["checkout"] = False
            scrapes = exporter.scrapes
            await prometheus.start()
            await until(lambda: exporter.scrapes > scrapes, "Prometheus scrapes again")
            assert shop.moves("checkout") == ["away"]

            turned_good = get_running_loop().time()
            exporter.up["checkout"] = True
            await until(lambda: shop.moves("checkout") == ["away", "home"], "traffic is back")
            print(f"metric good → write {shop.writes('checkout')[-1].at - turned_good:.2f} s")


async def test_a_window_waits_while_prometheus_is_away(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.split("checkout", "fallback")
    async with exporting("checkout") as exporter:
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address])
        async with prometheus, reactor(RULES, prometheus={"main": {"url": prometheus.url}}) as service:
            await service.settled(1)
            exporter.up["checkout"] = False

            async def window() -> bool:
                member = await checkout(service)
                return member is not None and member.window is not None

            await until_told(window, "the window of the dead service is open")
            await prometheus.kill()
            await until_unknown(service)
            # Long enough for the window to run out, had it not been told to wait. Nothing to await: nothing happens.
            await asyncio.sleep(TOLERATION)
            assert shop.moves("checkout") == []
            await prometheus.start()
            await until(lambda: shop.moves("checkout") == ["away"], "the window has run out where it had stopped")
