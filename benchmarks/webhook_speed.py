"""From an Alertmanager's post to the action on the bus, with every durable write in between."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import aiohttp

from benchmarks.measure import Result, spread
from benchmarks.world import world
from bus.port import Bus, Outgoing
from bus.subjects import ROOT
from bus.topology import DECISIONS

POSTS = 300
ROUTES = 300
RULE = """
- name: r{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  signals: [pager, ready]
  backends:
    - {{service: app{n}, target: custom/app{n}}}
    - {{service: app{n}-west, target: service/east/shop/app{n}-west}}
    - {{service: app{n}-central, target: service/east/shop/app{n}-central}}
"""
HEAD = """
apiVersion: reactor/v1
sources:
- {name: ready, kind: EndpointsWatch, cluster: east}
- {name: pager, kind: AlertmanagerWebhook, target: "custom/{app}", onResolved: Healthy}
rules:
"""


async def webhook_to_action() -> Result:
    """One alert a post; the action counts when it is stored. Beside it, one bare publish to the same server."""
    seconds, answered = [], []
    rules = HEAD + "".join(RULE.format(n=n) for n in range(ROUTES))
    async with world(ROUTES, rules) as w, aiohttp.ClientSession() as session:
        await w.known(ROUTES, 2)
        async with w.bus.read(DECISIONS, f"{ROOT}.decisions.>", after=0) as log:
            for number in range(POSTS):
                began = time.perf_counter()
                async with session.post(f"{w.webhook}/pager", json=_post(number)) as response:
                    assert response.status == 200, await response.text()
                answered.append(time.perf_counter() - began)
                assert await log.next(timedelta(seconds=10)), "no decision came"
                seconds.append(time.perf_counter() - began)
                await asyncio.sleep(0.01)  # the executor's part is another benchmark's
        bare = await bare_publishes(w.bus)
    ours, theirs = spread(seconds), spread(bare)
    figures = {"posts": POSTS, **ours, "answered": spread(answered), "bare_publish": theirs}
    figures["ratio_p50"] = round(ours["p50_ms"] / theirs["p50_ms"], 1)
    bars = {"p50_ms": "≤ 10", "p99_ms": "≤ 50"}
    return Result("webhook-to-action", "POST → action published and audited", figures, bars)


def _post(number: int) -> dict[str, object]:
    labels = {"alertname": "Down", "app": f"app{number}"}
    return {
        "version": "4", "status": "firing", "groupKey": "{}", "receiver": "reactor", "externalURL": "http://am",
        "alerts": [
            {"status": "firing", "labels": labels, "annotations": {}, "startsAt": "2026-01-01T00:00:00Z",
             "endsAt": "0001-01-01T00:00:00Z", "fingerprint": f"{number:016x}"}
        ],
    }  # fmt: skip


async def bare_publishes(bus: Bus) -> list[float]:
    """What one acknowledged publish takes by itself."""
    seconds = []
    for number in range(200):
        began = time.perf_counter()
        await bus.publish(Outgoing(f"{ROOT}.decisions.0.bench", b"{}", f"bench{number}"))
        seconds.append(time.perf_counter() - began)
    return seconds
