"""The process that looks at the world and tells the bus: targets' health, and routes as they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from bus.messages import Fact, Health, Observation, Route
from bus.port import Bus
from reactor.clients.changes import ReadInterval
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from reactor.sources.kubernetes.route_projection import route_from
from reactor.sources.refresh import RefreshRequests, answer_requests
from reactor.sources.republisher import LONG_AGO, Republisher
from tests.simulation.fleet.cluster import CLUSTER, NAMESPACE, Cluster

NAME = "source"
"""How it is asked."""
REFRESH = 10.0
STALE = 60.0
UNBROKEN = timedelta(seconds=1)
"""A longer time between two looks is one in which nothing looked: the process stood still."""
LOOK = (0.02, 0.2)
"""How long, in seconds, a change takes to be noticed."""


def target(service: str) -> str:
    """What a service's health is told as."""
    return f"service/{CLUSTER}/{NAMESPACE}/{service}"


class Source:
    """Looks again and again; says changes at once, everything every REFRESH seconds, and what it is asked for."""

    def __init__(
        self, bus: Bus, publisher: FactPublisher, clock: Clock, cluster: Cluster,
        healthy: Callable[[], Mapping[str, bool]], random: Random, *, stamped: bool = True,
    ) -> None:  # fmt: skip
        """`stamped`: whether objects say which decision they follow."""
        self._bus = bus
        self._publisher = publisher
        self._clock, self._cluster, self._healthy, self._random = clock, cluster, healthy, random
        self._stamped = stamped
        self._owing: list[Callable[[], None]] = []
        self._health: Republisher[Observation] = self._standing()
        self._routes: Republisher[Route] = self._standing()
        self._seen: dict[str, object] = {}
        self._last: datetime | None = None

    def _standing(self) -> Republisher[Any]:
        async def tell(fact: Fact) -> None:
            await self._publisher.tell(fact)

        def on_facts_lost(owe_all: Callable[[], None]) -> Callable[[], None]:
            self._owing.append(owe_all)
            return lambda: self._owing.remove(owe_all)

        return Republisher(tell, self._clock, period_seconds=REFRESH, on_facts_lost=on_facts_lost)

    def route_by(self, publisher: FactPublisher) -> None:
        """Other rules count: what stands is said once more, to those that it concerns now."""
        self._publisher = publisher
        for owe_all in self._owing:
            owe_all()

    async def run(self) -> None:
        """Look until cancelled."""
        requests = RefreshRequests(self._bus, self._clock).hear
        answering = answer_requests(
            NAME, self._health, lambda _: LONG_AGO, lambda _: None, requests, self._clock
        )  # fmt: skip
        keeping = [asyncio.create_task(one.keep(lambda: LONG_AGO)) for one in (self._health, self._routes)]
        keeping.append(asyncio.create_task(answering))
        try:
            while True:
                await self._look()
                await self._clock.sleep(self._random.uniform(*LOOK))
        finally:
            for task in keeping:
                task.cancel()

    async def _look(self) -> None:
        if self._cluster.is_down:
            return  # what it looks at is what the API server says
        now = self._clock.now()
        look = ReadInterval(now, now)
        for service, healthy in self._healthy().items():
            status = Health.HEALTHY if healthy else Health.UNHEALTHY
            key = target(service)
            before = self._health.get(key)
            seen = Observation(target=key, status=status, observed_at=now, stale_seconds=STALE, source=NAME)
            changed = before is None or before.status is not status
            unbroken = self._last is None or now - self._last <= UNBROKEN
            await self._health.say(key, seen, changed=changed, look=look, unbroken=unbroken)
        self._last = now
        for path, obj in self._cluster.objects.items():
            if self._seen.get(path) is obj:
                continue  # every write makes another object
            self._seen[path] = obj
            route = route_from(CLUSTER, "TrafficSplit", obj, None, at=self._clock.now())
            if not self._stamped:
                route = route.model_copy(update={"annotations": {}})
            known = self._routes.get(path)
            if known is None or (known.backends, known.annotations) != (route.backends, route.annotations):
                await self._routes.say(path, route, changed=True)
