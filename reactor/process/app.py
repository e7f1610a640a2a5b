"""The composition root: from settings to a running process. Everything is made here, once, and handed down."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from bus.embedded import EmbeddedServer
from bus.embedded_health import EmbeddedHealth, keep_up
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS
from reactor.audit.signing import Signer
from reactor.decide.decider import Decider
from reactor.fleet.presence import Presence, Process, few
from reactor.fleet.receiver_uptime import ReceiverUptime
from reactor.process.active_roles import ActiveRoles
from reactor.process.bus_cleanup import LeaseCollector
from reactor.process.bus_repair import BusReconciler
from reactor.process.bus_watch import BusWatch
from reactor.process.process_context import ProcessContext
from reactor.process.reloading import RuleFiles
from reactor.process.role_set import ROLES, keep_running
from reactor.process.session import connected, ready
from reactor.runtime import telemetry, tracing
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, SettingsError
from reactor.runtime.garbage import ShortPauses
from reactor.runtime.installed_versions import installed
from reactor.runtime.loop_lag import measure
from reactor.runtime.quarantine import foreign
from reactor.runtime.supervise import Loops
from reactor.settings.bus_settings import BusSettings
from reactor.settings.model import Settings
from reactor.settings.receiver_settings import Receiver
from reactor.settings.tracing_settings import Tracing
from rules.loader import RuleSet
from rules.rulefile.sources import AlertmanagerWebhook

if TYPE_CHECKING:
    from reactor.clients.prometheus_api import Prometheus
    from reactor.web.page_server import PageServer
    from reactor.webhook.webhook_server import WebhookServer

log = logging.getLogger(__name__)

ALL_ROLES = frozenset(ROLES)
OWN_VERSION = installed("alert-reactor")


class Died(ReactorError):
    """Something that this process cannot live without has ended for good."""


class App:
    """One process. `async with App(settings) as app: await app.failed()`."""

    def __init__(self, settings: Settings, roles: frozenset[str] = ALL_ROLES, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.roles = roles
        self.clock = clock or Clock()
        self.name = settings.name or f"{socket.gethostname()}-{os.getpid()}"
        self.receiver_url = ""
        """URL at which the HTTP server listens for webhooks; empty: it is not served."""
        self.health_url = ""
        """URL of health and metrics, served by a server of their own."""
        self.web_url = ""
        """URL of the page; empty: this process does not have the role `web`."""
        self.server: EmbeddedServer | None = None
        self._health: EmbeddedHealth | None = None
        self._bus: JetStreamBus | None = None
        self._files: RuleFiles | None = None
        self._watch: BusWatch | None = None
        self._webhooks: WebhookServer | None = None
        self._in_hands: Counter[str] = Counter()
        """Number of posts in flight in our routers, by the subject of their source."""
        self._active: ActiveRoles | None = None
        self._broken = asyncio.Event()
        self.page: PageServer | None = None
        """Server of the page; None: this process does not have the role `web`."""
        self._began = self.clock.now()
        self._loops = Loops()
        self._stack = AsyncExitStack()

    @property
    def bus(self) -> JetStreamBus:
        """The bus, once the process has started."""
        if self._bus is None:
            msg = "the process has not started"
            raise RuntimeError(msg)
        return self._bus

    @property
    def decider(self) -> Decider | None:
        """The running Decider; None if this process has not that role, or none is running at this moment."""
        current = self._active.current if self._active is not None else None
        return current.decider if current is not None else None

    def reload(self) -> None:
        """Look at the rule files now: a caller says that they are ready."""
        if self._files is not None:
            self._files.look_now()

    async def __aenter__(self) -> App:
        """Start. Raises SettingsError, InvalidFiles, BusError: everything that is wrong before anything runs."""
        self._files = RuleFiles(self.settings)
        try:
            await self._start(self._files)
        except BaseException:  # a cancellation too: `async with` ends only what it has begun
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop in the reverse order: take nothing new, hand over, leave no process behind."""
        await self._stack.aclose()

    async def failed(self) -> None:
        """Wait until something has ended that this process cannot live without. Raises Died.

        The embedded nats-server is started again meanwhile, where it ends.
        """
        ends = [
            _after(self.bus.connection.closed, "the bus is gone for good; start the process again"),
            _after(self._broken, "no rules can be carried out any more; start the process again"),
        ]
        if self.server is not None:
            ends.append(_bus_ended(self.server))
        waits = [asyncio.create_task(end) for end in ends]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        raise Died(done.pop().result())

    async def _start(self, files: RuleFiles) -> None:
        telemetry.say_versions()
        telemetry.clock_skew.set_function(lambda: self.clock.skew_seconds)  # it grows while the bus is away
        if (traces := self.settings.tracing) is not None:
            self._stack.enter_context(
                tracing.exported(str(traces.url), _headers(traces), traces.sample_ratio, self.name)
            )
        # The HTTP server first: while the rest starts, a webhook hears 503 and comes again.
        self._webhooks = await self._listen(files.rules)
        self._bus = bus = await self._connect(self.settings.bus)
        await ready(bus, self.settings.bus, self.clock)
        await files.remember(bus.store(GROUPS))
        repair = BusReconciler(bus, self.settings.bus, self.roles)
        uptime = ReceiverUptime(bus, self.clock, self.name)
        self._watch = BusWatch(bus, self.clock, repair, self._health, self.settings.bus.store, uptime.interrupted)
        presence = Presence(bus, self._process(files))
        await self._stack.enter_async_context(presence.here())  # before anything is taken in this name
        if "receiver" in self.roles:
            await self._stack.enter_async_context(uptime.answering())
            up = bus.connection.up
            self._stack.callback(bus.connection.watch(lambda: uptime.connection(up=up.is_set())))
        context = await self._context(bus, repair, uptime)
        self._active = active = ActiveRoles(context, self.roles, self._listen_for, self._broken)
        self._stack.push_async_callback(active.close)
        await active.start(files.rules)
        presence.say(self._process(files))

        async def switch(rules: RuleSet) -> None:
            await active.switch(files.rules, rules)

        async def watch() -> None:
            await files.watch(switch, lambda: presence.say(self._process(files)))

        if "web" in self.roles:
            await self._serve_page(bus, files)
        self._run("standstill", self.clock.standstill.run)
        self._run("loop lag", measure)
        self._run("garbage", ShortPauses().run)
        self._run("presence", presence.run)
        self._run("bus probe", self._watch.run)
        self._run("bus reconciler", repair.run)
        self._run("lease collector", LeaseCollector(bus).run)
        self._run("rule files", watch)
        if "receiver" in self.roles:
            self._webhooks.bus, self._webhooks.on_refused = bus, uptime.interrupted
            await uptime.begin()

    async def _serve_page(self, bus: JetStreamBus, files: RuleFiles) -> None:
        from reactor.web.backtest_folder import BacktestFolder
        from reactor.web.board import Board
        from reactor.web.page_server import PageServer

        board, reach = Board(bus, self.clock, lambda: files.rules), None
        if self.settings.web.token_review is not None:
            from reactor.clients.clusters import Clusters

            clusters = Clusters(self.settings.clusters)
            self._stack.push_async_callback(clusters.close)
            reach = clusters.get
        self.page = PageServer(
            self.settings.web, board, self.clock, clusters=self.settings.clusters, digest=lambda: files.digest,
            reach=reach, backtests=BacktestFolder.of(self.settings),
        )  # fmt: skip
        self._run("web groups", board.follow_groups)
        self._run("web actions", board.follow_actions)
        self._run("web outcomes", board.follow_outcomes)
        self._run("web bus", board.check)
        self._run("web updates", board.publish)
        self.web_url = await self._stack.enter_async_context(self.page.listening())

    async def _context(self, bus: JetStreamBus, repair: BusReconciler, uptime: ReceiverUptime) -> ProcessContext:
        import aiohttp  # 0.3 s: not for who only asks for help

        from reactor.clients.clusters import Clusters

        clusters = Clusters(self.settings.clusters)
        self._stack.push_async_callback(clusters.close)
        prometheus = self._prometheus()
        for one in prometheus.values():
            self._stack.push_async_callback(one.close)
        http = await self._stack.enter_async_context(aiohttp.ClientSession())
        signer = Signer.of(self.settings.audit.key_file)
        return ProcessContext(
            self.settings, self.clock, self.name, bus, clusters, prometheus, http, repair, uptime, self._loops, signer,
            self._in_hands,
        )  # fmt: skip

    def _prometheus(self) -> Mapping[str, Prometheus]:
        if not self.settings.prometheus:
            return {}
        from reactor.clients.prometheus_api import Prometheus  # 7 MB of requests: not for who has none

        return {name: Prometheus(name, endpoint) for name, endpoint in self.settings.prometheus.items()}

    def _process(self, files: RuleFiles) -> Process:
        since = self._began if self._active is None else self._active.since
        return Process(self.name, tuple(sorted(self.roles)), files.digest, since, few(files.problems), OWN_VERSION)

    async def _listen(self, rules: RuleSet) -> WebhookServer:
        from reactor.webhook.receiver import listening, listening_for_health
        from reactor.webhook.webhook_server import WebhookServer

        # Every process answers /livez, /readyz and /metrics; only a receiver takes alerts.
        takes_alerts = "receiver" in self.roles
        server = WebhookServer(
            self.settings.receiver if takes_alerts else Receiver(), sources=self._webhook_sources(rules), bus=None,
            ready=self._not_ready, clock=self.clock, in_hands=self._in_hands,
        )  # fmt: skip
        health = listening_for_health(server, self.settings.health, self.settings.health_address)
        self.health_url = await self._stack.enter_async_context(health)
        if takes_alerts:
            self.receiver_url = await self._stack.enter_async_context(listening(server))
        return server

    def _listen_for(self, *rules: RuleSet) -> None:
        if self._webhooks is not None:
            self._webhooks.sources = frozenset[str]().union(*(self._webhook_sources(one) for one in rules))

    def _webhook_sources(self, rules: RuleSet) -> frozenset[str]:
        if "receiver" not in self.roles:
            return frozenset()
        return frozenset(source.name for source in rules.sources if isinstance(source, AlertmanagerWebhook))

    async def _connect(self, settings: BusSettings) -> JetStreamBus:
        urls = settings.url
        if urls is None:
            self.server = await self._stack.enter_async_context(
                EmbeddedServer(settings.store, binary=settings.server_binary)
            )
            urls = self.server.url
            log.info("embedded nats-server", extra={"url": urls, "store": str(settings.store)})
            self._health = EmbeddedHealth(self.server)
            self._run("bus health", self._health.run)
        bus = await self._stack.enter_async_context(connected(settings, urls, self.name, read_only=False))
        bus.connection.on_foreign = foreign
        return bus

    def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Keep a loop running until the process stops."""
        keep_running(self._stack, name, loop, self._loops)

    async def _not_ready(self) -> list[str]:
        if self._active is None or self._watch is None:
            return ["starting"]
        if self._active.current is None:
            return ["the rules are being changed"]
        if reason := await self._watch.unreachable():
            return [reason]
        return [*self._watch.troubles, *self._loops.troubles(asyncio.get_running_loop().time())]


async def _after(event: asyncio.Event, message: str) -> str:
    """Give a message once an event has happened."""
    await event.wait()
    return message


async def _bus_ended(server: EmbeddedServer) -> str:
    """Give a message once the embedded server cannot be kept up."""
    return f"the bus has ended: {await keep_up(server)}; start the process again"


def _headers(traces: Tracing) -> Mapping[str, str]:
    try:
        return traces.headers()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"tracing.bearerTokenFile: {error}") from error
