"""The composition root: from settings to a running process. Everything is made here, once, and handed down."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bus.embedded import EmbeddedServer
from bus.embedded_health import FIX, EmbeddedHealth
from bus.errors import BusError, NotPermitted, Unavailable
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS
from reactor.audit.signing import Signer
from reactor.decide.decider import Decider
from reactor.fleet.presence import Presence, Process, few
from reactor.process.bus_cleanup import LeaseCollector
from reactor.process.bus_repair import BusReconciler
from reactor.process.reloading import RuleFiles
from reactor.process.role_set import ROLES, ProcessContext, RoleSet, keep_running
from reactor.process.session import CLOCKS_APART, clock_difference, connected, ready
from reactor.process.zeros import begin_at_zero
from reactor.runtime import telemetry, tracing
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, Retryable, SettingsError
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
PROBE_SECONDS = 2.0
SWITCH_AGAIN_SECONDS = 1.0
"""How long the next crew waits for a bus that is away."""
START_SECONDS = 60.0
"""For so long a start asks a bus again that does not answer in time; then it ends, and says why."""


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
        """Where the HTTP server listens for webhooks."""
        self.health_url = ""
        """Where health and metrics are served, whatever befalls the other."""
        self.web_url = ""
        """Where the page is; empty: this process has not the role `web`."""
        self.server: EmbeddedServer | None = None
        self._health: EmbeddedHealth | None = None
        self._ailment = ""
        """Why the bus stores nothing, as last told; empty: it stores, or the reason is not known."""
        self._bus: JetStreamBus | None = None
        self._files: RuleFiles | None = None
        self._upkeep: BusReconciler | None = None
        self._webhooks: WebhookServer | None = None
        self._in_hands: Counter[str] = Counter()
        """How many posts of each source, by its subject, our routers have in flight."""
        self._role_set: RoleSet | None = None
        self.page: PageServer | None = None
        """What serves the page; None: this process has not the role `web`."""
        self._since = self.clock.now()
        """Since when this crew is at work."""
        self._broken = asyncio.Event()
        self._changing: asyncio.Task[None] | None = None
        self._loops = Loops()
        self._stack = AsyncExitStack()
        self._shift = AsyncExitStack()

    @property
    def bus(self) -> JetStreamBus:
        """The bus, once the process has started."""
        if self._bus is None:
            msg = "the process has not started"
            raise RuntimeError(msg)
        return self._bus

    @property
    def decider(self) -> Decider | None:
        """What decides here; None where nothing does, or not at this moment."""
        return self._role_set.decider if self._role_set is not None else None

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
        """Wait until something has ended that this process cannot live without. Raises Died."""
        ends: dict[asyncio.Task[Any], str] = {
            asyncio.create_task(self.bus.connection.closed.wait()): "the bus is gone for good; start the process again",
            asyncio.create_task(self._broken.wait()): "no rules can be carried out any more; start the process again",
        }
        if self.server is not None:
            ends[asyncio.create_task(self.server.exited())] = "the bus has ended; start the process again"
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in ends:
                wait.cancel()
        raise Died(ends[done.pop()])

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
        self._upkeep = upkeep = BusReconciler(bus, self.settings.bus, self.roles)
        presence = Presence(bus, self._process(files))
        await self._stack.enter_async_context(presence.here())  # before anything is taken in this name
        context = await self._context(bus, upkeep)
        self._stack.push_async_callback(self._end_shift)
        await self._first(context, files.rules)
        presence.say(self._process(files))

        async def switch(rules: RuleSet) -> None:
            await self._switch(context, files.rules, rules)

        async def watch() -> None:
            await files.watch(switch, lambda: presence.say(self._process(files)))

        if "web" in self.roles:
            await self._serve_page(bus, files)
        self._run("standstill", self.clock.standstill.run)
        self._run("loop lag", measure)
        self._run("garbage", ShortPauses().run)
        self._run("presence", presence.run)
        self._run("bus probe", self._probing)
        self._run("bus upkeep", upkeep.run)
        self._run("leftovers", LeaseCollector(bus).run)
        self._run("rule files", watch)
        if "receiver" in self.roles:
            self._webhooks.bus = bus

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

    async def _context(self, bus: JetStreamBus, upkeep: BusReconciler) -> ProcessContext:
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
            self.settings, self.clock, self.name, bus, clusters, prometheus, http, upkeep, self._loops, signer,
            self._in_hands,
        )  # fmt: skip

    def _prometheus(self) -> Mapping[str, Prometheus]:
        if not self.settings.prometheus:
            return {}
        from reactor.clients.prometheus_api import Prometheus  # 7 MB of requests: not for who has none

        return {name: Prometheus(name, endpoint) for name, endpoint in self.settings.prometheus.items()}

    async def _begin(self, context: ProcessContext, rules: RuleSet) -> None:
        begin_at_zero(self.settings, rules, self.roles)

        async def begin() -> None:
            self._role_set = await self._shift.enter_async_context(RoleSet(context, rules, self.roles))
            self._since = self.clock.now()

        await self._to_its_end(begin)

    async def _end_shift(self) -> None:
        async def end() -> None:
            self._role_set = None
            await self._shift.aclose()

        await self._to_its_end(end)

    async def _to_its_end(self, change: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin or end a crew. A stop that interrupts this waits until it is done, else a role would be left behind."""
        while self._changing is not None and not self._changing.done():
            await asyncio.wait([self._changing])
        self._changing = asyncio.create_task(change())
        await asyncio.shield(self._changing)

    async def _switch(self, context: ProcessContext, before: RuleSet, rules: RuleSet) -> None:
        """Use other rules. Raises ReactorError where that fails, and uses those of before again.

        Webhooks are taken meanwhile: they wait on the bus for the next router.
        """
        self._listen_for(before, rules)
        await self._end_shift()
        try:
            await self._patiently(context, rules)
        except Exception as error:  # a mistake of ours too: without roles nothing would fail over
            await self._back_to(context, before)
            raise ReactorError(f"{type(error).__name__}: {error}") from error
        self._listen_for(rules)

    async def _back_to(self, context: ProcessContext, rules: RuleSet) -> None:
        try:
            await self._patiently(context, rules)
        except Exception:  # a process without roles must end, whatever the reason
            self._broken.set()
            raise
        self._listen_for(rules)

    async def _first(self, context: ProcessContext, rules: RuleSet) -> None:
        """Begin at the start: what is wrong is told at once, but for a bus that is only slow to answer."""
        began = self.clock.monotonic()
        while True:
            try:
                return await self._begin(context, rules)
            except Unavailable as error:
                if isinstance(error, NotPermitted) or self.clock.monotonic() - began >= START_SECONDS:
                    raise
                log.warning("the start waits for the bus: %s", error)
                await asyncio.sleep(SWITCH_AGAIN_SECONDS)

    async def _patiently(self, context: ProcessContext, rules: RuleSet) -> None:
        while True:
            try:
                return await self._begin(context, rules)
            except Unavailable as error:
                log.warning("the next rules wait for the bus: %s", error)
                await asyncio.sleep(SWITCH_AGAIN_SECONDS)

    def _process(self, files: RuleFiles) -> Process:
        return Process(
            self.name, tuple(sorted(self.roles)), files.digest, self._since, few(files.problems), OWN_VERSION
        )

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

    async def _probing(self) -> None:
        """A connection that looks healthy may sit on a full disk: only a write tells."""
        apart = stalled = False
        while True:
            await self._diagnose()
            stalled = self._told_of_stalls(before=stalled)
            try:
                ahead, doubt = await clock_difference(self.bus, self.clock)
            except BusError:
                telemetry.bus_up.set(0)
                await self._diagnose()
                if self._upkeep is not None:
                    self._upkeep.look_now()  # it may have lost all that it held
                raise
            telemetry.bus_up.set(0 if self._lacking or self._why_not_stored else 1)
            apart = self._told_of_clocks(ahead, doubt, apart)
            await asyncio.sleep(PROBE_SECONDS)

    async def _diagnose(self) -> None:
        """Say once why the bus stores nothing, and what to do."""
        if self._health is not None:
            return  # it says so itself
        before, self._ailment = self._ailment, await self.bus.ailment()
        if self._ailment and not before:
            log.error("%s", self._ailment)
        elif before and not self._ailment:
            log.info("nats-server stores again, or is away")

    def _told_of_stalls(self, *, before: bool) -> bool:
        """Say once that readings stalled; `/readyz` names them all."""
        found = [*self.bus.connection.stalled.values()]
        if found and not before:
            log.error("%d readings got nothing; %s", len(found), found[0])
        elif before and not found:
            log.info("all that is stored on the bus is read again")
        return bool(found)

    def _told_of_clocks(self, ahead: timedelta, doubt: timedelta, before: bool) -> bool:
        """Time is never made to jump while we decide; what drifts apart is told, and set right at the next start."""
        # The machine's own, which we may not go by: it is what NTP has to set right.
        telemetry.clock_difference.set((self.clock.now() + ahead - self.clock.machine()).total_seconds())
        apart = abs(ahead) - doubt > CLOCKS_APART
        if apart and not before:
            log.warning(
                "the bus's clock and ours have drifted apart; a restart uses the bus's",
                extra={"ahead_seconds": round(-ahead.total_seconds(), 1)},
            )
        return apart

    async def _not_ready(self) -> list[str]:
        if self._bus is None:
            return ["starting"]
        if self._role_set is None:
            return ["the rules are being changed"]
        try:
            await self._bus.probe()
        except (BusError, Retryable) as error:
            return [f"bus: {self._why_not_stored or error}"]
        found = [f"bus: {one}" for one in (*self._lacking, *filter(None, [self._why_not_stored]))]
        return [*found, *self._loops.troubles(asyncio.get_running_loop().time())]

    @property
    def _why_not_stored(self) -> str:
        if self._health is None:
            return self._ailment
        return f"{self._health.trouble} ({self.settings.bus.store}); {FIX}" if self._health.trouble else ""

    @property
    def _lacking(self) -> Sequence[str]:
        stalled = () if self._bus is None else (*self._bus.connection.stalled.values(),)
        return (*self._upkeep.lacking, *self._upkeep.paused, *stalled) if self._upkeep is not None else ()


def _headers(traces: Tracing) -> Mapping[str, str]:
    try:
        return traces.headers()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"tracing.bearerTokenFile: {error}") from error
