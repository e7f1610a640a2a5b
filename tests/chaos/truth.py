"""The truth of a run: how each backend is now, told to whatever the reactors look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from bus.jetstream import JetStreamBus
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from tests.chaos import scene, zone
from tests.chaos.alerting import Alerting
from tests.chaos.kubelets import Kubelets
from tests.chaos.script import Plan
from tests.chaos.stranger import Stranger
from tests.chaos.zone_record import ZoneRecord
from tests.e2e.zone_world import ZoneWorld


@dataclass(slots=True)
class Doors:
    """An HTTP server with a path for each backend: 200 while it is healthy, else 503."""

    url: str = ""
    bad: set[str] = field(default_factory=set)
    hang: bool = False
    """Nothing is answered."""

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one probe."""
        while self.hang:
            await asyncio.sleep(0.1)
        return web.Response(status=503 if request.path.strip("/") in self.bad else 200)


@dataclass(slots=True)
class Truth:
    """True health of the targets: applies each turn of the script to the servers."""

    cluster: EmulatedCluster
    stranger: Stranger
    doors: Doors
    alerting: Alerting | None = None
    kubelets: Kubelets | None = None
    zones: ZoneRecord | None = None

    def turn(self, plan: Plan, service: str, *, healthy: bool) -> None:
        """Set the backend's health."""
        match plan.source:
            case "bus":
                self.stranger.turn(scene.target(plan, service), healthy=healthy)
            case "slices":
                self.cluster.set_endpoints(scene.NAMESPACE, service, ready=int(healthy), not_ready=int(not healthy))
            case "copies":
                assert self.kubelets is not None
                self.kubelets.turn(plan, service, healthy=healthy)
            case "alerts" | "query":
                assert self.alerting is not None
                self.alerting.exporter.up[service] = healthy
            case _:
                paths = zone.paths(plan, service) if plan.source == "zone" else [service]
                for path in paths:
                    (self.doors.bad.discard if healthy else self.doors.bad.add)(path)


@asynccontextmanager
async def truth(
    emulator: Emulator, cluster: EmulatedCluster, bus: JetStreamBus, script: Sequence[Plan], alerting: Alerting | None
) -> AsyncIterator[Truth]:
    """Everything that tells of the backends, alive while the block runs."""
    doors = Doors()
    stranger = Stranger(bus, Clock(), scene.told_by_bus(script))
    async with AsyncExitStack() as stack:
        runner = web.ServerRunner(web.Server(doors.answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        doors.url = "http://{}:{}".format(*runner.addresses[0][:2])
        told = Truth(cluster, stranger, doors, alerting)
        lives = [stranger.speak()]
        if any(plan.source == "copies" for plan in script):
            told.kubelets = Kubelets(emulator)
            lives.append(told.kubelets.live())
        if any(plan.source == "zone" for plan in script):
            inhabited = ZoneWorld(emulator)
            told.zones = ZoneRecord(inhabited)
            lives.append(inhabited.live())
        tasks = [asyncio.create_task(life) for life in lives]
        try:
            yield told
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception):
                raise end
