"""The process that looks at the world and tells the bus: targets' health, and the current state of routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from bus.messages import Cluster as Member
from bus.messages import Fact, Health, Observation, Route, Workload, Zones
from reactor.clients.changes import ReadInterval
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from reactor.sources.kubernetes.route_projection import route_from
from reactor.sources.refresh import RefreshRequests, answer_requests
from reactor.sources.republisher import Republisher
from reactor.sources.standing_fact import LONG_AGO
from tests.simulation.fleet.bus import SimBus
from tests.simulation.fleet.cluster import CLUSTER, NAMESPACE, Cluster
from tests.simulation.fleet.workloads import Workloads, members
from tests.simulation.fleet.zones import IsolatedZones, inventory, zone_target

NAME, SECOND = "source", "second"
"""Names by which it is asked: the second is that of the second of two signals of a zone."""
REFRESH = 10.0
STALE = 60.0
UNBROKEN = timedelta(seconds=1)
"""A longer time between two looks is one in which nothing looked: the process was suspended."""
LOOK = (0.02, 0.2)
"""Range of seconds until a change is noticed."""


def target(service: str) -> str:
    """Target of a service's health."""
    return f"service/{CLUSTER}/{NAMESPACE}/{service}"


class Source:
    """Looks again and again; says changes at once, everything every REFRESH seconds, and what it is asked for."""

    def __init__(
        self, bus: SimBus, publisher: FactPublisher, clock: Clock, cluster: Cluster,
        healthy: Callable[[], Mapping[str, bool]], random: Random, *, stamped: bool = True,
        zones: IsolatedZones, workloads: Workloads,
    ) -> None:  # fmt: skip
        """`stamped`: whether objects say which decision they follow. `zones`: those that are listed."""
        self._bus = bus
        bus.on_facts_lost(self._owe_all)
        self._publisher = publisher
        self._clock, self._cluster, self._healthy, self._random = clock, cluster, healthy, random
        self._stamped = stamped
        self._owing: list[Callable[[], None]] = []
        self._zones, self._workloads = zones, workloads
        self._health: Republisher[Observation] = self._standing()
        self._second: Republisher[Observation] = self._standing()
        self._listed: Republisher[Zones] = self._standing()
        self._copies: Republisher[Workload | Member] = self._standing()
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
        """Other rules count: all observations are published once more, to those that it concerns now."""
        self._publisher = publisher
        self._owe_all()

    async def run(self) -> None:
        """Look until cancelled."""
        requests = RefreshRequests(self._bus, self._clock).hear
        asked: list[tuple[str, Republisher[Observation]]] = [(NAME, self._health)]
        kept: list[Republisher[Any]] = [self._health, self._routes]
        if self._zones.clusters:
            asked.append((SECOND, self._second))
            kept += [self._second, self._listed]
        if self._workloads.names:
            kept.append(self._copies)
        keeping = [asyncio.create_task(one.keep(lambda: LONG_AGO)) for one in kept]
        for name, one in asked:
            answering = answer_requests(name, one, lambda _: LONG_AGO, lambda _: None, requests, self._clock)
            keeping.append(asyncio.create_task(answering))
        try:
            while True:
                await self._look()
                await self._clock.sleep(self._random.uniform(*LOOK))
        finally:
            for task in keeping:
                task.cancel()

    def _owe_all(self) -> None:
        """Publish all again: the bus came back without what was stored, or other rules count."""
        for owe_all in self._owing:
            owe_all()

    async def _look(self) -> None:
        if self._cluster.is_down:
            return  # what it looks at is what the API server says
        now = self._clock.now()
        look = ReadInterval(now, now)
        unbroken = self._last is None or now - self._last <= UNBROKEN
        truth = self._healthy()
        for gone in self._health.keys - truth.keys():
            self._health.forget(gone)
        for key, healthy in truth.items():
            status = Health.HEALTHY if healthy else Health.UNHEALTHY
            # A look like the last one but for its moment, a hundred times in a simulated minute, is not checked again.
            last = self._health.get(key)
            seen = (
                last.model_copy(update={"observed_at": now}) if last is not None and last.status is status
                else Observation(target=key, status=status, observed_at=now, stale_seconds=STALE, source=NAME)
            )  # fmt: skip
            says = [(self._health, seen)]
            if key.startswith("zone/"):
                says.append((self._second, seen.model_copy(update={"source": SECOND, "signal": SECOND})))
            for standing, said in says:
                before = standing.get(key)
                changed = before is None or before.status is not status
                await standing.say(key, said, changed=changed, look=look, unbroken=unbroken)
        self._last = now
        for name in self._zones.clusters:
            zones = inventory(name, now, healthy=truth[zone_target(name)], marked=self._zones.marked(name))
            listed = self._listed.get(name)
            await self._listed.say(name, zones, changed=listed is None or listed.zones != zones.zones, look=look)
        await self._list_workloads(now, look)
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

    async def _list_workloads(self, now: datetime, look: ReadInterval) -> None:
        for member in members(now) if self._workloads.names else ():
            await self._copies.say(member.name, member, changed=False, look=look)
        for name in self._workloads.names:
            workload, known = self._workloads.listed(name, now), self._copies.get(name)
            changed = not isinstance(known, Workload) or known.clusters != workload.clusters
            await self._copies.say(name, workload, changed=changed, look=look)
