"""An alert storm: 5,000 alerts in one POST, each about a target of its own, until each target's window is open.

Beside it an alert of another source, whose rule has no toleration: how much later it is decided.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from datetime import timedelta

import aiohttp

from benchmarks.measure import Result, cpu, spread
from benchmarks.scaling_speed import TAKEN
from benchmarks.webhook_speed import bare_publishes
from benchmarks.world import World, world
from bus.port import LogReader
from bus.subjects import ROOT
from bus.topology import DECISIONS

ALERTS = 4_900
"""One POST; with the first ones, as many targets as one source may have by default."""
FIRST = 5
"""Alerts of one POST each, before the storm: what a quiet system takes."""
LOOK_SECONDS = 0.02
RULES = """
apiVersion: reactor/v1
sources:
- {name: pager, kind: AlertmanagerWebhook, target: "custom/{app}", onResolved: Healthy}
- {name: other, kind: AlertmanagerWebhook, target: "zone/east/{app}", onResolved: Healthy}
rules:
- {name: opened, kind: Notification, match: "custom/**", tolerationSeconds: 3600}
- {name: at-once, kind: Notification, match: "zone/**", tolerationSeconds: 0}
"""


async def storm() -> Result:
    """One POST of one alert, some times, then one POST of all; until answered, and until the decider has all."""
    async with world(1, RULES) as w, aiohttp.ClientSession() as session:
        alone = [await _posted(w, session, f"first-{number}", 1) for number in range(FIRST)]
        async with w.bus.read(DECISIONS, f"{ROOT}.decisions.*.at-once", after=0) as actions:
            other_alone = [await _acted(w, session, actions, f"z-{number}") for number in range(FIRST)]
            before, known = cpu(w.pid), await _taken(w, session)
            posted = asyncio.create_task(_posted(w, session, "storm", ALERTS))
            while await _taken(w, session) < known + 200:
                await asyncio.sleep(LOOK_SECONDS)
            begun = cpu(w.pid)
            other = await _acted(w, session, actions, "z-beside")
            until_other = cpu(w.pid) - begun
            answered, opened = await posted
        spent = cpu(w.pid) - before
        again, _ = await _posted(w, session, "storm", ALERTS, news=False)
        bare = await bare_publishes(w.bus)
    figures = {
        "alerts": ALERTS, "cpu_seconds": round(spent, 2),
        "answered_ms": round(answered * 1000), "opened_ms": round(opened * 1000),
        "repeat_answered_ms": round(again * 1000), "other_ms": round(other * 1000),
        "other_cpu_seconds": round(until_other, 2), "other_alone": spread(other_alone),
        "one_answered": spread([one for one, _ in alone]), "one_opened": spread([one for _, one in alone]),
        "bare_publish": spread(bare),
    }  # fmt: skip
    bars = {"answered_ms": "≤ 300", "opened_ms": "≤ 2000", "other_ms": "≤ 2000 more than alone"}
    return Result("storm", f"{ALERTS} alerts in one POST", figures, bars)


async def _posted(
    w: World, session: aiohttp.ClientSession, name: str, count: int, *, news: bool = True
) -> tuple[float, float]:
    """Post so many alerts. Give the seconds until the answer, and until the decider has an observation of each."""
    wanted = await _taken(w, session) + count
    began = time.perf_counter()
    await _post(w, session, "pager", *(f"{name}-{number}" for number in range(count)))
    answered = time.perf_counter() - began
    while news and await _taken(w, session) < wanted:
        await asyncio.sleep(LOOK_SECONDS)
    return answered, time.perf_counter() - began


async def _acted(w: World, session: aiohttp.ClientSession, actions: LogReader, app: str) -> float:
    """Post an alert of the other source. Give the seconds until its decision is stored."""
    began = time.perf_counter()
    await _post(w, session, "other", app)
    assert await actions.next(timedelta(seconds=120)), "no decision came"
    return time.perf_counter() - began


async def _post(w: World, session: aiohttp.ClientSession, source: str, *apps: str) -> None:
    body = {"version": "4", "status": "firing", "alerts": [_alert(app) for app in apps]}
    async with session.post(f"{w.webhook}/{source}", json=body) as response:
        assert response.status == 200, await response.text()


async def _taken(w: World, session: aiohttp.ClientSession) -> int:
    async with session.get(w.webhook.replace("/v1/alerts", "/metrics")) as response:
        return sum(int(float(found)) for found in TAKEN.findall(await response.text()))


def _alert(app: str) -> dict[str, object]:
    labels = {"alertname": "Down", "app": app, "namespace": "shop", "severity": "page", "prometheus": "monitoring/k8s"}
    summary = f"{app} has not answered for two minutes, see the dashboard and the runbook"
    return {
        "status": "firing", "labels": labels, "annotations": {"summary": summary, "runbook": "https://wiki/" + app},
        "startsAt": "2026-01-01T00:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": hashlib.sha256(app.encode()).hexdigest()[:16],
    }  # fmt: skip
