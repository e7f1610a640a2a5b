"""The roles of one process, for as long as one rule set is in force. Other rules: end this role set and start the next.

All that a role remembers is stored on the bus, so that another role set is a clean restart without a new process.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from bus.messages import Fact, Notify, Observation
from bus.subjects import token
from bus.topology import ALERTS, LINKS, TEMPLATES
from reactor.clients.aws import Regions
from reactor.clients.balancers.connected import LoadBalancers
from reactor.clients.credentials import proxy_of
from reactor.clients.instant_queries import QueryRefused, Sample
from reactor.decide.decider import Decider
from reactor.decide.partition_context import PartitionContext
from reactor.fleet.fleet import Fleet
from reactor.process.process_context import ProcessContext
from reactor.route.publisher import FactPublisher
from reactor.runtime.errors import ReactorError, Retryable
from reactor.runtime.supervise import Loops, ended, forever
from rules.engine.routing import Routing
from rules.kinds.workload.copy_needs import clusters_of
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.preservation import paths_of
from rules.loader import RuleSet
from rules.rulefile.sources import AlertmanagerWebhook

if TYPE_CHECKING:
    from reactor.actions.karmada.control_plane import ControlPlane
    from reactor.sources.companions import Companions
    from reactor.sources.refresh import RefreshRequests

log = logging.getLogger(__name__)

ROLES = ("observer", "receiver", "router", "decider", "executor")
"""The receiver is no part of a RoleSet: it goes on listening while they change. Nor is the role `web`, which `all` does
not include: it opens one more port."""
STOP_SECONDS = 2.0
"""A loop that has not ended by then is told once more."""
FIRST_LOOK_SECONDS = 2.0
"""Longest wait of a start for what Alertmanagers list, where no alert is remembered."""
HAND_OVER_SECONDS = 10.0
"""The same for the decider: twice what it takes to hand its partitions over."""


class RoleSet:
    """`async with RoleSet(context, rules, roles)`: at the end all loops have stopped and given away what they owned."""

    def __init__(self, context: ProcessContext, rules: RuleSet, roles: frozenset[str]) -> None:
        self._context = context
        self._rules = rules
        self._roles = roles
        self._routing = Routing.of(rules)
        self._stack = AsyncExitStack()
        self._balancers = LoadBalancers(
            context.settings.load_balancers, context.clock, aws_proxy=proxy_of(context.settings.aws)
        )
        self.decider: Decider | None = None
        self._asking: tuple[RefreshRequests, Companions] | None = None

    async def __aenter__(self) -> RoleSet:
        """Raises Unavailable, and SettingsError where the rules ask for what this process cannot have."""
        self._stack.push_async_callback(self._balancers.close)
        try:
            if "executor" in self._roles:
                await self._executor()
            if "decider" in self._roles:
                self._decide()
            if "router" in self._roles:
                await self._router()
            if "observer" in self._roles:
                await self._observer()
        except BaseException:  # a cancellation too: `async with` ends only what it has begun
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop in the reverse order: take nothing new, hand over."""
        await self._stack.aclose()

    async def _executor(self) -> None:
        from reactor.actions.background import BackgroundTasks
        from reactor.actions.carrier_context import CarrierContext
        from reactor.actions.catalog import carry_out
        from reactor.actions.karmada.control_plane import ControlPlane
        from reactor.actions.workload.templates import BusTemplates
        from reactor.execute.executor import Executor

        context = self._context
        background = await self._stack.enter_async_context(BackgroundTasks())
        publisher = self._publisher("executor")

        async def query(prometheus: str, promql: str) -> list[Sample]:
            if prometheus not in context.prometheus:
                raise QueryRefused(f"prometheus.{prometheus}: a rule names it, the settings do not")
            return await context.prometheus[prometheus].query(promql)

        plane = ControlPlane(
            context.clusters.get, context.clock, context.settings.karmada.cluster, context.settings.karmada.host
        )
        placing = [rule for rule in self._rules.rules if isinstance(rule, WorkloadFailover)]
        moving = [rule.name for rule in placing if rule.carrier == "Karmada"]
        if moving:
            look = asyncio.create_task(_look_at_karmada(plane, moving), name="karmada")
            self._stack.push_async_callback(partial(ended, patience=STOP_SECONDS), look)
        for rule, unknown in self._strangers():
            log.warning("a rule names clusters that the settings do not", extra={"rule": rule, "cluster": unknown})
        world = CarrierContext(
            context.clock, context.clusters.get, context.settings.notifiers, context.http, instance=context.name,
            background=background, templates=BusTemplates(context.bus.store(TEMPLATES), context.clock),
            create_namespaces=context.settings.create_namespaces, karmada=plane, query=query, say=publisher.tell,
            ec2=Regions(proxy_of(context.settings.aws)).get, load_balancers=self._balancers.get,
            route_kinds=context.settings.described_route_kinds, link=self._link(),
        )  # fmt: skip
        executor = Executor(
            context.bus, context.clock, publisher, lambda action, execution: carry_out(action, world, execution),
            concurrency=context.settings.concurrency,
        )  # fmt: skip
        self._run("executor", executor.run)

    def _link(self) -> Callable[[Notify], Awaitable[str]] | None:
        from reactor.actions.notify.approval_link import ApprovalLinks

        page = self._context.settings.web
        if page.url is None:
            return None
        links, url = ApprovalLinks(self._context.bus.store(LINKS)), str(page.url).rstrip("/")
        lasts = timedelta(seconds=page.link_seconds)

        async def link(action: Notify) -> str:
            return f"{url}/#/approve/{await links.token(action, lasts)}"

        return link

    def _decide(self) -> None:
        context = self._context
        desk = PartitionContext(
            context.bus, context.clock, self._routing, context.settings.bus.partitions, context.name, context.signer
        )
        self.decider = Decider(desk, losses=self._losses)
        keep_running(self._stack, "decider", self.decider.run, context.loops, patience=HAND_OVER_SECONDS)

    def _unread(self) -> int:
        return self.decider.unread() if self.decider is not None else 0

    async def _router(self) -> None:
        from reactor.alerts.lifecycle import AlertLifecycle
        from reactor.alerts.look_requests import serve
        from reactor.clients.alertmanager_api import Alertmanager
        from reactor.route.router import Router

        context = self._context
        publisher = self._publisher("router")
        alertmanagers = {name: Alertmanager(name, end) for name, end in context.settings.alertmanager.items()}
        for alertmanager in alertmanagers.values():
            self._stack.push_async_callback(alertmanager.close)

        async def query(prometheus: str, promql: str) -> list[Mapping[str, str]]:
            return [sample.labels for sample in await context.prometheus[prometheus].query(promql)]

        _, companions = self._refreshing()

        async def tell(observations: Sequence[Observation]) -> None:
            await companions.looked_at(observations)
            await publisher.publish_all(observations)

        lifecycle = AlertLifecycle(
            sources=[source for source in self._rules.sources if isinstance(source, AlertmanagerWebhook)],
            store=context.bus.store(ALERTS), clock=context.clock, tell=tell, query=query,
            alertmanagers=alertmanagers, receiving_since=context.uptime.since,
        )  # fmt: skip
        await self._stack.enter_async_context(lifecycle)
        self._stack.callback(context.uptime.watch(lifecycle.look_now))
        self._stack.callback(context.reconciler.watch(lifecycle.facts_lost))
        if lifecycle.is_empty and alertmanagers:
            # Before the sources of this process speak: alone they might bring traffic back to what an alert is about.
            look = asyncio.create_task(lifecycle.sweep(), name="first look at alerts")
            await asyncio.wait({look}, timeout=FIRST_LOOK_SECONDS)
            await ended(look)
        await serve(context.bus, lifecycle, self._stack)
        most = {token(source.name): source.max_targets for source in self._rules.sources}
        router = Router(
            context.bus, publisher, lifecycle, context.clock, targets_max=most, signer=context.signer,
            in_hands=context.in_hands, targets_of_others_max=context.settings.bus.max_targets_per_publisher,
            at_once=context.settings.bus.observations_at_once, unread=self._unread,
        )  # fmt: skip
        self._run("router", router.run)
        self._run("parked posts", router.run_parked)
        self._run("excess of publishers", router.excess.run)
        self._run("alert keeper", router.sweep)

    async def _observer(self) -> None:
        from reactor.fleet.observer import KIND, Observer
        from reactor.process.observer_jobs import observer_jobs
        from reactor.sources.probes.addresses import probing_session
        from reactor.sources.source_context import SourceContext

        context, publisher = self._context, self._publisher("observer")
        requests, companions = self._refreshing()

        async def tell(fact: Fact) -> None:
            if not fleet.heard:
                raise Retryable("the others do not hear us, and may observe in our place")
            await companions.looked_at([fact])
            await publisher.tell(fact)

        probing = await self._stack.enter_async_context(probing_session())
        world = SourceContext(
            context.clock, tell, context.clusters, context.prometheus, probing,
            requests=requests.hear, on_facts_lost=context.reconciler.watch,
            load_balancers=self._balancers, described=context.settings.clusters,
            route_kinds=context.settings.described_route_kinds,
            health_scripts=frozenset(context.settings.health_scripts),
            preserved=frozenset(
                path for rule in self._rules.rules if isinstance(rule, WorkloadFailover) for path in paths_of(rule)
            ),
        )  # fmt: skip
        world.scheduler.start()
        self._stack.callback(world.scheduler.shutdown, wait=False)
        jobs = observer_jobs(self._rules, context, world)
        # While rules change, some members know other sources than we do: they share theirs, we share ours, and none is
        # left out. Members that know the same sources are of one fleet.
        known = hashlib.sha256("\0".join(sorted(jobs)).encode()).hexdigest()[:8]
        fleet = Fleet(
            context.bus, context.name, len(jobs), context.clock, kind=f"{KIND}-{known}-", losses=self._losses
        )  # fmt: skip
        self._run("observer", Observer(fleet, jobs).run)

    def _refreshing(self) -> tuple[RefreshRequests, Companions]:
        """Ways to ask sources to look again, for all roles of this process."""
        from reactor.sources.companions import Companions
        from reactor.sources.refresh import RefreshRequests

        if self._asking is None:
            requests = RefreshRequests(self._context.bus, self._context.clock)
            self._asking = requests, Companions(self._rules.rules, self._rules.sources, requests)
        return self._asking

    def _strangers(self) -> Iterator[tuple[str, str]]:
        """Give rules that place workloads by our own hand, with the clusters where no hand reaches: misspelt, often."""
        for rule in self._rules.rules:
            if isinstance(rule, WorkloadFailover) and rule.carrier == "Kubernetes":
                unknown = {*clusters_of(rule.placement)} - {"*", *self._context.settings.clusters}
                if unknown:
                    yield rule.name, ", ".join(sorted(unknown))

    def _losses(self) -> int:
        return self._context.bus.connection.losses

    def _publisher(self, role: str) -> FactPublisher:
        """A publisher that says who it is."""
        context = self._context
        source = f"/reactor/{role}/{context.name}"
        return FactPublisher(context.bus, self._routing, context.settings.bus.partitions, context.clock, source=source)

    def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        keep_running(self._stack, name, loop, self._context.loops)


async def _look_at_karmada(plane: ControlPlane, rules: Sequence[str]) -> None:
    """Say once, at the start, which rules Karmada's own failover holds up; each of their actions looks again."""
    from reactor.actions.karmada.switches import KarmadaFights

    try:
        await plane.ours_to_move()
    except KarmadaFights as error:
        text = "Karmada fails over by itself: these rules move nothing until it does not"
        log.warning(text, extra={"rules": ", ".join(rules), "reason": str(error)})
    except ReactorError as error:
        log.warning("cannot see yet whether Karmada fails over by itself", extra={"reason": str(error)})


def keep_running(
    stack: AsyncExitStack,
    name: str,
    loop: Callable[[], Awaitable[None]],
    loops: Loops,
    *,
    patience: float = STOP_SECONDS,
) -> None:
    """Keep a loop running until the stack is closed. That asks for its end every `patience` seconds until it comes."""
    task = asyncio.create_task(forever(name, loop, loops), name=name)
    stack.push_async_callback(partial(ended, patience=patience), task)
