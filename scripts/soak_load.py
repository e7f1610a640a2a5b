"""The load of a soak: routes that fail and come back, and what became of each."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count

import aiohttp

from benchmarks.world import NAMESPACE, World

ROUTES = 100
EVERY = 0.5
"""Seconds between two outages."""
HOLD = 2.0
"""Seconds that a route stays away."""
WINDOW = 1.0
"""Seconds: toleration and recovery of each route."""
PATIENCE = 20.0
"""Seconds after which a move counts as missing."""
LOOK = 0.01
SOURCE = "pager"
RULES = f"""
apiVersion: reactor/v1
sources:
- {{name: readiness, kind: EndpointsWatch, cluster: east}}
- {{name: {SOURCE}, kind: AlertmanagerWebhook, target: "service/east/{NAMESPACE}/{{app}}", onResolved: Healthy}}
rules:
- name: moved
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, selector: failover.linkerd.io/controlled-by=linkerd-failover}}
  tolerationSeconds: {WINDOW:g}
  recoverySeconds: {WINDOW:g}
"""


class Load:
    """Fails one route after the other, without end."""

    def __init__(self, w: World) -> None:
        self._world = w
        self._free = deque(range(ROUTES))
        self._late: list[float] = []
        self._missing = 0

    def told(self) -> tuple[int, float, int]:
        """Give the moves since this was last asked, how late the slowest was in seconds, and how many are missing."""
        late, missing = self._late, self._missing
        self._late, self._missing = [], 0
        return len(late), round(max(late, default=0.0), 3), missing

    async def run(self) -> None:
        """Go on until cancelled. Raises where the service refuses what it is told."""
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for number in count():
                if self._free:  # else all hundred are under way, and their moves are what is missing
                    group.create_task(self._fail(self._free.popleft(), session if number % 2 else None))
                await asyncio.sleep(EVERY)

    async def _fail(self, route: int, session: aiohttp.ClientSession | None) -> None:
        """One outage and its end: told by an alert where there is a session to post it, else by the endpoints."""
        for healthy in (False, True):
            if session is not None:
                await self._post(session, route, healthy=healthy)
            else:
                self._world.cluster.set_endpoints(NAMESPACE, f"app{route}", ready=int(healthy), not_ready=1)
            await self._moved(route, away=not healthy)
            await asyncio.sleep(HOLD)
        self._free.append(route)

    async def _post(self, session: aiohttp.ClientSession, route: int, *, healthy: bool) -> None:
        status = "resolved" if healthy else "firing"
        alert = {
            "status": status, "labels": {"alertname": "Down", "app": f"app{route}"}, "annotations": {},
            "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-01-01T00:00:00Z" if healthy else "0001-01-01T00:00:00Z",
            "fingerprint": f"{route:016x}",
        }  # fmt: skip
        body = {
            "version": "4", "status": status, "groupKey": "{}", "receiver": "reactor", "externalURL": "http://am",
            "alerts": [alert],
        }  # fmt: skip
        async with session.post(f"{self._world.webhook}/{SOURCE}", json=body) as answer:
            answer.raise_for_status()

    async def _moved(self, route: int, *, away: bool) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while self._is_away(route) is not away:
            if loop.time() - began > PATIENCE:
                self._missing += 1
                return
            await asyncio.sleep(LOOK)
        self._late.append(loop.time() - began - WINDOW)

    def _is_away(self, route: int) -> bool:
        split = self._world.cluster.find("trafficsplits", f"app{route}", NAMESPACE)
        return split is not None and split["spec"]["backends"][0]["weight"] == 0
