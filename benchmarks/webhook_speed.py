"""Time from an Alertmanager's post to the action on the bus, with every durable write in between.

At rest, and while another source posts 500 alerts a second; over a nats-server that syncs each write to its disk, as
the embedded one does, and over one with the default, which syncs every two minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import aiohttp

from benchmarks.measure import Result, spread
from benchmarks.world import World, world
from bus.port import Bus, LogReader, Outgoing
from bus.subjects import ROOT
from bus.topology import DECISIONS
from reactor.runtime.clock import Clock

POSTS = 200
"""Posts in each of the two halves, at rest and busy, each of another route."""
ROUTES = 2 * POSTS
SECONDS_MAX = 30
"""Most seconds for each half: on a crowded machine with fewer posts."""
A_SECOND = 500
AT_ONCE = 50
"""Alerts of one post of the other source."""
OTHERS = 2_000
"""Alerts of the other source: each fires, ends, and fires again."""
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
- {name: others, kind: AlertmanagerWebhook, target: "zone/east/{app}", onResolved: Healthy}
rules:
- {name: others, kind: Notification, match: "zone/**", tolerationSeconds: 3600}
"""


async def webhook_to_action() -> Result:
    """One alert a post; the action counts when its record is stored. Beside it, one bare publish to the same server."""
    figures = {
        "alerts_a_second": A_SECOND, "sync_always": await _measured(lax=False),
        "sync_default": await _measured(lax=True),
    }  # fmt: skip
    bars = {
        "sync_always": "p50 ≤ 10", "sync_default": "p50 ≤ 5, p99 ≤ 25, at rest and at 500 alerts a second",
    }  # fmt: skip
    return Result("webhook-to-action", "POST → action published and audited", figures, bars)


async def _measured(*, lax: bool) -> dict[str, object]:
    rules = HEAD + "".join(RULE.format(n=n) for n in range(ROUTES))
    async with world(ROUTES, rules, lax=lax) as w, aiohttp.ClientSession() as session:
        await w.known(ROUTES, 2)
        async with w.bus.read(DECISIONS, f"{ROOT}.decisions.>", after=0) as log:
            at_rest = await _posted(w, session, log, range(POSTS))
            async with _others(w, session):
                busy = await _posted(w, session, log, range(POSTS, ROUTES))
        bare = spread(await bare_publishes(w.bus))
    return {"at_rest": at_rest, "busy": busy, "bare_publish": bare}


async def _posted(w: World, session: aiohttp.ClientSession, log: LogReader, numbers: range) -> dict[str, object]:
    """Post an alert of each of these routes, one after the other."""
    seconds, answered = [], []
    moved, ends = w.moves.count, time.perf_counter() + SECONDS_MAX
    for number in numbers:
        began = time.perf_counter()
        if began >= ends:
            break
        async with session.post(f"{w.webhook}/pager", json=_post(number)) as response:
            assert response.status == 200, await response.text()
        answered.append(time.perf_counter() - began)
        assert await log.next(timedelta(seconds=10)), "no decision came"
        seconds.append(time.perf_counter() - began)
        await w.moves.reach(moved + len(seconds))
        await asyncio.sleep(0.01)  # what the executor does afterwards is another benchmark's
    return {"posts": len(seconds), **spread(seconds), "answered": spread(answered)}


@asynccontextmanager
async def _others(w: World, session: aiohttp.ClientSession) -> AsyncIterator[None]:
    """Post A_SECOND alerts a second of another source while the block runs."""
    posting = asyncio.create_task(_posting(w, session))
    try:
        yield
    finally:
        posting.cancel()
        for failed in await asyncio.gather(posting, return_exceptions=True):
            if not isinstance(failed, asyncio.CancelledError):
                raise TimeoutError(f"the other source could not post: {failed!r}")


async def _posting(w: World, session: aiohttp.ClientSession) -> None:
    now = asyncio.get_running_loop().time
    began = now()
    for count, body in enumerate(_bodies()):
        async with session.post(f"{w.webhook}/others", json=body) as response:
            response.raise_for_status()
        await asyncio.sleep(max(0.0, began + (count + 1) * AT_ONCE / A_SECOND - now()))


def _bodies() -> Iterator[dict[str, object]]:
    """Bodies in turn: all alerts fire, then all end, and so on."""
    for status in itertools.cycle(("firing", "resolved")):
        for start in range(0, OTHERS, AT_ONCE):
            at = Clock().now()
            yield {
                "version": "4",
                "status": status,
                "alerts": [_other(n, status, at) for n in range(start, start + AT_ONCE)],
            }


def _other(number: int, status: str, at: datetime) -> dict[str, object]:
    ends = {"endsAt": at.isoformat()} if status == "resolved" else {}
    starts = at if status == "firing" else at - timedelta(seconds=OTHERS / A_SECOND)
    labels = {"alertname": "Slow", "app": f"other{number}", "namespace": "shop", "severity": "page"}
    return {
        "status": status, "labels": labels, "annotations": {"summary": f"other{number} is slow"},
        "startsAt": starts.isoformat(), "fingerprint": f"f{number:015x}", **ends,
    }  # fmt: skip


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
    """Seconds of single acknowledged publishes by themselves."""
    seconds = []
    for number in range(200):
        began = time.perf_counter()
        await bus.publish(Outgoing(f"{ROOT}.decisions.0.bench", b"{}", f"bench{number}"))
        seconds.append(time.perf_counter() - began)
    return seconds
