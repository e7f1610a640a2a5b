"""A fleet in which much goes on at once, so that each page has something to show: for pictures and for axe."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from bus.messages import Backend, Health, Observation, Outcome, Route
from bus.topology import GROUPS
from rules.core.group import Group
from rules.engine.group_codec import dump_group
from rules.kinds.zone.state import Isolation, ZoneNodes, ZonesSeen, ZoneState
from tests.integration.web.conftest import EAST, RULES, WEST, Scene

BUSY = (
    RULES
    + """
- name: search
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: search}
  backends:
    - {service: search, target: service/east/shop/search}
    - {service: search-west, target: service/west/shop/checkout}
  tolerationSeconds: 0
sources:
- name: error-rate
  kind: PrometheusQuery
  prometheus: main
  query: sum by (cluster) (rate(http_errors_total{app="checkout"}[1m]))
  target: service/{cluster}/shop/checkout
  unhealthyWhen: {above: 0.05}
"""
)
SEARCH = "service/east/shop/search"
RATES = (0.011, 0.012, 0.009, 0.014, 0.012, 0.018, 0.031, 0.044, 0.083, 0.121, 0.134)


async def busy(scene: Scene) -> None:
    """Break and move things: a window, a hold, a failover that was done, an isolated zone."""
    now = scene.app.clock.now()
    for number, rate in enumerate(RATES):
        status = Health.UNHEALTHY if rate > 0.05 else Health.HEALTHY
        at = now - timedelta(seconds=60 * (len(RATES) - number))
        await scene.publisher.publish(
            Observation(target=EAST, signal="error-rate", status=status, observed_at=at, detail=f"value {rate:g}")
        )
    await _isolate(scene)
    await scene.ask_for_approval()
    backends = (Backend(service="search", weight=1), Backend(service="search-west", weight=0))
    await scene.publisher.publish(
        Route(cluster="east", kind="TrafficSplit", namespace="shop", name="search", backends=backends, observed_at=now)
    )
    await scene.see(SEARCH, Health.HEALTHY)
    await scene.see(WEST, Health.HEALTHY)
    await scene.see(SEARCH, Health.UNHEALTHY, "HTTP 503")
    act = await _act(scene, "search")
    await scene.publisher.publish(
        Outcome(action=act["id"], rule="search", object=act["object"], status="Done", wrote=True,
                observed_at=scene.app.clock.now())
    )  # fmt: skip
    await scene.publisher.publish(
        Route(cluster="east", kind="TrafficSplit", namespace="shop", name="search", observed_at=scene.app.clock.now(),
              backends=(Backend(service="search", weight=0), Backend(service="search-west", weight=1)))
    )  # fmt: skip
    await scene.group("search", lambda row: row["failedOver"] and not row["actions"])
    await scene.break_checkout()


async def _act(scene: Scene, rule: str) -> Any:
    async with asyncio.timeout(60):
        while not (acts := (await scene.get(f"/api/v1/actions?rule={rule}"))[1]["actions"]):
            await asyncio.sleep(0.05)
    return acts[0]


async def _isolate(scene: Scene) -> None:
    """Store a zone's isolation as a decider would: in a partition that has no owner."""
    now = scene.app.clock.now()
    zones = {"eu-1a": ZoneNodes(6, 0), "eu-1b": ZoneNodes(6, 6), "eu-1c": ZoneNodes(5, 4)}
    since = now - timedelta(minutes=12)
    isolation = Isolation("eu-1a", "Failover", "Done", "ZoneUnhealthy", since, since, by="otto", touched=("Fence",))
    group = Group("prod-zones", "cluster/east", ZoneState(ZonesSeen(now, zones), isolation))
    await scene.app.bus.store(GROUPS).put("99.group.prod-zones", dump_group(group), revision=None)
