"""A stop is orderly, quick, and leaves nothing behind."""

from __future__ import annotations

from asyncio import get_running_loop
from pathlib import Path

import pytest

from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.shop import Shop
from tests.e2e.test_neighbours import Prometheus, served
from tests.e2e.waiting import until

STOP_SECONDS = 5.0
"""A pod gets thirty; half of what it takes to notice."""
SOURCES = """
- {name: nodes, kind: NodeWatch, cluster: east}
- {name: work, kind: WorkloadWatch, cluster: east, namespace: shop}
- {name: api, kind: ClusterProbe, cluster: east}
- {name: door, kind: TcpProbe, target: custom/door, host: 127.0.0.1, port: 9}
"""
"""Those that watch, and those that look; nodes have two signals."""


@pytest.mark.alone
async def test_sigterm_ends_the_reactor_and_its_bus_at_once(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    service = reactor(document(ALERTS, SOURCES, rules=failover()))
    async with service:
        await service.settled(1)
        assert await service.post(body(firing("checkout"))) == 200
        await until(lambda: shop.moves("checkout") == ["away"], "it is at work")
        children = service.children()
        assert {Path(f"/proc/{child}/comm").read_text().strip() for child in children} == {"nats-server"}
        asked = get_running_loop().time()
        assert await service.stop() == 0
        took = get_running_loop().time() - asked
    print(f"SIGTERM → end {took:.2f} s")
    assert took < STOP_SECONDS
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []
    log = service.log.read_text()
    assert "Traceback" not in log
    assert "level=error" not in log


async def test_sigkill_of_the_reactor_leaves_no_bus_behind(shop: Shop, reactor: MakeReactor) -> None:
    async with reactor(document(ALERTS, rules=failover())) as service:
        children = service.children()
        assert children
        await service.kill()
        await until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "its children are gone")


@pytest.mark.alone
async def test_sigterm_ends_a_reactor_whose_prometheus_drips(shop: Shop, reactor: MakeReactor) -> None:
    """Each byte comes before any time-out of a read, so the query itself never ends."""
    prometheus = Prometheus()
    prometheus.hostile = True
    query = """
- {name: errors, kind: PrometheusQuery, prometheus: main, query: up, target: "service/east/shop/x", everySeconds: 1}
"""
    async with served(prometheus.drip) as url:
        service = reactor(document(query, rules=failover()), prometheus={"main": {"url": url, "timeoutSeconds": 60}})
        async with service:
            await until(lambda: prometheus.asked, "a query is under way")
            asked = get_running_loop().time()
            assert await service.stop() == 0
            took = get_running_loop().time() - asked
        prometheus.hostile = False
    print(f"SIGTERM → end {took:.2f} s, with a Prometheus that drips")
    assert took < STOP_SECONDS
