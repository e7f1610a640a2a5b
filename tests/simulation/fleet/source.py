"""The process that looks at the world and tells the bus: targets' health, and routes as they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random

from bus.messages import Health, Observation, Route
from reactor.clock import Clock
from reactor.roles.publisher import Publisher
from reactor.sources.route_projection import route_from_traffic_split
from reactor.sources.standing import Standing
from tests.simulation.fleet.cluster import CLUSTER, NAMESPACE, Cluster

REFRESH = 10.0
STALE = 60.0
LOOK = (0.02, 0.2)
"""How long, in seconds, a change takes to be noticed."""


def target(service: str) -> str:
    """What a service's health is told as."""
    return f"service/{CLUSTER}/{NAMESPACE}/{service}"


class Source:
    """Looks again and again; says changes at once, and everything every REFRESH seconds."""

    def __init__(
        self, publisher: Publisher, clock: Clock, cluster: Cluster, healthy: Callable[[], Mapping[str, bool]],
        random: Random,
    ) -> None:  # fmt: skip
        self._clock, self._cluster, self._healthy, self._random = clock, cluster, healthy, random
        self._health: Standing[Observation] = Standing(publisher.tell, clock, period_seconds=REFRESH)
        self._routes: Standing[Route] = Standing(publisher.tell, clock, period_seconds=REFRESH)
        self._seen: dict[str, object] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        keeping = [asyncio.create_task(one.keep(lambda: 0.0)) for one in (self._health, self._routes)]
        try:
            while True:
                await self._look()
                await self._clock.sleep(self._random.uniform(*LOOK))
        finally:
            for task in keeping:
                task.cancel()

    async def _look(self) -> None:
        for service, healthy in self._healthy().items():
            status = Health.HEALTHY if healthy else Health.UNHEALTHY
            before = self._health.get(service)
            if before is None or before.status is not status:
                seen = Observation(
                    target=target(service), status=status, observed_at=self._clock.now(), stale_seconds=STALE
                )
                await self._health.say(service, seen, changed=True)
        for path, obj in self._cluster.objects.items():
            if self._seen.get(path) is obj:
                continue  # every write makes another object
            self._seen[path] = obj
            route = route_from_traffic_split(CLUSTER, obj, at=self._clock.now())
            known = self._routes.get(path)
            if known is None or (known.backends, known.annotations) != (route.backends, route.annotations):
                await self._routes.say(path, route, changed=True)
