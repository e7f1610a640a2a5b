"""The composition root: from settings to a running process. Everything is made here, once, and handed down."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bus.embedded import EmbeddedServer
from bus.errors import BusError
from bus.jetstream import JetStreamBus, provision
from bus.topology import ALERTS
from reactor import telemetry
from reactor.clock import Clock
from reactor.connecting import agree_on_partitions, connected
from reactor.errors import ReactorError, Retryable
from reactor.roles.decider import Decider
from reactor.roles.fleet import Fleet
from reactor.roles.partition import Desk
from reactor.roles.publisher import Publisher
from reactor.roles.supervise import ended, forever
from reactor.rulefiles import load_for
from reactor.settings import BusSettings, Settings
from rules.engine.routing import Routing
from rules.language.loader import RuleSet
from rules.language.model import TrafficFailover
from rules.language.sources import AlertmanagerWebhook

if TYPE_CHECKING:
    import aiohttp

    from reactor.clients.clusters import Clusters
    from reactor.clients.prometheus import Prometheus
    from reactor.webhook.server import WebhookServer

log = logging.getLogger(__name__)

ROLES = ("observer", "receiver", "router", "decider", "executor")
ALL_ROLES = frozenset(ROLES)
PROBE_SECONDS = 2.0
STOP_SECONDS = 10.0
"""A loop that has not ended by then is told once more: twice what a decider takes to hand its partitions over."""


class Died(ReactorError):
    """Something that this process cannot live without has ended for good."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the roles of one process share."""

    settings: Settings
    rules: RuleSet
    clock: Clock
    name: str
    bus: JetStreamBus
    routing: Routing
    clusters: Clusters
    prometheus: Mapping[str, Prometheus]
    http: aiohttp.ClientSession

    def publisher(self, role: str) -> Publisher:
        """A publisher that says who it is."""
        return Publisher(
            self.bus, self.routing, self.settings.bus.partitions, self.clock, source=f"/reactor/{role}/{self.name}"
        )


class App:
    """One process. `async with App(settings) as app: await app.failed()`."""

    def __init__(self, settings: Settings, roles: frozenset[str] = ALL_ROLES, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.roles = roles
        self.clock = clock or Clock()
        self.name = settings.name or f"{socket.gethostname()}-{os.getpid()}"
        self.receiver_url = ""
        """Where the HTTP server listens: webhooks, health, metrics."""
        self.decider: Decider | None = None
        self.server: EmbeddedServer | None = None
        self._bus: JetStreamBus | None = None
        self._up = False
        self._stack = AsyncExitStack()

    @property
    def bus(self) -> JetStreamBus:
        """The bus, once the process has started."""
        if self._bus is None:
            msg = "the process has not started"
            raise RuntimeError(msg)
        return self._bus

    async def __aenter__(self) -> App:
        """Start. Raises SettingsError, InvalidFiles, BusError: everything that is wrong before anything runs."""
        rules = load_for(self.settings)
        for warning in rules.warnings:
            log.warning("%s", warning)
        try:
            await self._start(rules)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop in the reverse order: take nothing new, hand over, leave no process behind."""
        await self._stack.aclose()

    async def failed(self) -> None:
        """Wait until something has ended that this process cannot live without. Raises Died."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self.bus.connection.closed.wait())]
        if self.server is not None:
            waits.append(asyncio.create_task(self.server.exited()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        raise Died("the bus is gone for good; start the process again")

    async def _start(self, rules: RuleSet) -> None:
        # The HTTP server first: while the rest starts, a webhook hears 503 and comes again.
        server = await self._listen(rules)
        self._bus = await self._connect(self.settings.bus)
        await provision(self._bus, replicas=self.settings.bus.replicas)
        await agree_on_partitions(self._bus, self.settings.bus.partitions)
        shared = await self._shared(rules, self._bus)
        if "executor" in self.roles:
            await self._executor(shared)
        if "decider" in self.roles:
            self._decider(shared)
        if "router" in self.roles:
            await self._router(shared)
        if "observer" in self.roles:
            await self._observer(shared)
        self._run("bus probe", self._probing)
        if server is not None:
            server.bus = self._bus

    async def _shared(self, rules: RuleSet, bus: JetStreamBus) -> Shared:
        import aiohttp  # 0.3 s: not for who only asks for help

        from reactor.clients.clusters import Clusters
        from reactor.clients.prometheus import Prometheus

        clusters = Clusters(self.settings.clusters)
        self._stack.push_async_callback(clusters.close)
        prometheus = {name: Prometheus(name, endpoint) for name, endpoint in self.settings.prometheus.items()}
        for one in prometheus.values():
            self._stack.push_async_callback(one.close)
        http = await self._stack.enter_async_context(aiohttp.ClientSession())
        return Shared(
            self.settings, rules, self.clock, self.name, bus, Routing(rules.rules), clusters, prometheus, http
        )

    async def _listen(self, rules: RuleSet) -> WebhookServer | None:
        from reactor.roles.receiver import listening
        from reactor.webhook.server import WebhookServer

        # Every process answers /livez, /readyz and /metrics; only a receiver takes alerts.
        takes = "receiver" in self.roles
        sources = {s.name for s in rules.sources if isinstance(s, AlertmanagerWebhook)} if takes else set()
        server = WebhookServer(
            self.settings.receiver, sources=sources, bus=None, ready=self._not_ready, clock=self.clock
        )
        self.receiver_url = await self._stack.enter_async_context(listening(server))
        return server if takes else None

    async def _connect(self, settings: BusSettings) -> JetStreamBus:
        urls = settings.url
        if urls is None:
            self.server = await self._stack.enter_async_context(EmbeddedServer(settings.store))
            urls = self.server.url
            log.info("embedded nats-server", extra={"url": urls, "store": str(settings.store)})
        return await self._stack.enter_async_context(connected(settings, urls, self.name))

    async def _executor(self, shared: Shared) -> None:
        from reactor.actions.aside import Aside
        from reactor.actions.catalog import ActionWorld, carry_out
        from reactor.roles.executor import Executor

        aside = await self._stack.enter_async_context(Aside())
        world = ActionWorld(
            shared.clock, shared.clusters.get, shared.settings.notifiers, shared.http, instance=shared.name,
            aside=aside,
        )  # fmt: skip
        executor = Executor(
            shared.bus, shared.clock, shared.publisher("executor"), lambda action: carry_out(action, world),
            concurrency=shared.settings.concurrency,
        )  # fmt: skip
        self._run("executor", executor.run)

    def _decider(self, shared: Shared) -> None:
        desk = Desk(shared.bus, shared.clock, shared.routing, shared.settings.bus.partitions, shared.name)
        self.decider = Decider(desk)
        self._run("decider", self.decider.run)

    async def _router(self, shared: Shared) -> None:
        from reactor.clients.alertmanager import Alertmanager
        from reactor.roles.router import Router
        from reactor.webhook.keeper import Keeper

        publisher = shared.publisher("router")
        alertmanagers = {name: Alertmanager(name, end) for name, end in shared.settings.alertmanager.items()}
        for alertmanager in alertmanagers.values():
            self._stack.push_async_callback(alertmanager.close)

        async def query(prometheus: str, promql: str) -> list[Mapping[str, str]]:
            return [sample.labels for sample in await shared.prometheus[prometheus].query(promql)]

        keeper = Keeper(
            sources=[source for source in shared.rules.sources if isinstance(source, AlertmanagerWebhook)],
            store=shared.bus.store(ALERTS), clock=shared.clock, tell=publisher.publish, query=query,
            alertmanagers=alertmanagers,
        )  # fmt: skip
        await self._stack.enter_async_context(keeper)
        router = Router(shared.bus, publisher, keeper)
        self._run("router", router.run)
        self._run("alert keeper", router.sweep)

    async def _observer(self, shared: Shared) -> None:
        from reactor.roles.observer import KIND, Observer, Start
        from reactor.sources.addresses import probing_session
        from reactor.sources.catalog import start_all
        from reactor.sources.world import World

        probing = await self._stack.enter_async_context(probing_session())
        world = World(shared.clock, shared.publisher("observer").tell, shared.clusters, shared.prometheus, probing)
        world.scheduler.start()
        self._stack.callback(world.scheduler.shutdown, wait=False)
        jobs: dict[str, Start] = {
            f"source/{source.name}": partial(start_all, [source], world)
            for source in shared.rules.sources
            if not isinstance(source, AlertmanagerWebhook)
        }
        if routes := [rule.route for rule in shared.rules.rules if isinstance(rule, TrafficFailover)]:
            jobs["routes"] = partial(start_all, (), world, routes=routes)
        fleet = Fleet(shared.bus, shared.name, len(jobs), shared.clock, kind=KIND)
        self._run("observer", Observer(fleet, jobs).run)

    def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Keep a loop running until the process stops."""
        self._stack.push_async_callback(_cancelled, asyncio.create_task(forever(name, loop), name=name))

    async def _probing(self) -> None:
        """A connection that looks healthy may sit on a full disk: only a write tells."""
        while True:
            try:
                await self.bus.probe()
            except BusError:
                self._set_up(up=False)
                # It may have lost all that it held; then nobody else makes the streams anew.
                await provision(self.bus, replicas=self.settings.bus.replicas)
                raise
            self._set_up(up=True)
            await asyncio.sleep(PROBE_SECONDS)

    def _set_up(self, *, up: bool) -> None:
        self._up = up
        telemetry.bus_up.set(up)

    async def _not_ready(self) -> list[str]:
        if self._bus is None:
            return ["starting"]
        try:
            await self._bus.probe()
        except (BusError, Retryable) as error:
            return [f"bus: {error}"]
        return []


async def _cancelled(task: asyncio.Task[None]) -> None:
    await ended(task, patience=STOP_SECONDS)
