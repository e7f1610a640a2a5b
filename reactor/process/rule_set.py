"""The roles of one process, for as long as one rule set stands. Other rules: end this crew and start the next one.

All that a role remembers stands on the bus, so that changing the crew is a clean restart without a new process.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from bus.jetstream import JetStreamBus
from bus.messages import Fact, LoadBalancerKind
from bus.subjects import token
from bus.topology import ALERTS, TEMPLATES
from reactor.audit.signing import Signer
from reactor.clients.balancers.connected import LoadBalancers
from reactor.clients.promql import QueryRefused, Sample
from reactor.decide.decider import Decider
from reactor.decide.partition import Desk
from reactor.fleet.fleet import Fleet
from reactor.process.bus_repair import Upkeep
from reactor.route.publisher import Publisher
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, Retryable
from reactor.runtime.supervise import Loops, ended, forever
from reactor.settings.model import Settings
from rules.engine.routing import Routing
from rules.kinds.workload.preservation import paths_of
from rules.rulefile.lint.coverage import clusters_of
from rules.rulefile.loader import RuleSet
from rules.rulefile.model import TrafficFailover
from rules.rulefile.sources import AlertmanagerWebhook
from rules.rulefile.workload import ClusterTaint, WorkloadFailover

if TYPE_CHECKING:
    import aiohttp

    from reactor.actions.karmada.control_plane import ControlPlane
    from reactor.clients.clusters import Clusters
    from reactor.clients.prometheus import Prometheus
    from reactor.fleet.observer import Start

log = logging.getLogger(__name__)

ROLES = ("observer", "receiver", "router", "decider", "executor")
"""The receiver is no part of the crew: it goes on listening while crews change."""
STOP_SECONDS = 2.0
"""A loop that has not ended by then is told once more."""
HAND_OVER_SECONDS = 10.0
"""The same for the decider: twice what it takes to hand its partitions over."""


@dataclass(frozen=True, slots=True)
class House:
    """What the process has whatever the rules say."""

    settings: Settings
    clock: Clock
    name: str
    bus: JetStreamBus
    clusters: Clusters
    prometheus: Mapping[str, Prometheus]
    http: aiohttp.ClientSession
    upkeep: Upkeep
    loops: Loops
    """What tells /readyz which roles do not do their work."""
    signer: Signer | None = None
    """Signs the audit; None: the settings have no key for it."""


class Crew:
    """`async with Crew(house, rules, roles)`: at the end all loops have stopped, and what they owned is given away."""

    def __init__(self, house: House, rules: RuleSet, roles: frozenset[str]) -> None:
        self._house = house
        self._rules = rules
        self._roles = roles
        self._routing = Routing.of(rules)
        self._stack = AsyncExitStack()
        self._balancers = LoadBalancers(house.settings.load_balancers, house.clock)
        self.decider: Decider | None = None

    async def __aenter__(self) -> Crew:
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
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop in the reverse order: take nothing new, hand over."""
        await self._stack.aclose()

    async def _executor(self) -> None:
        from reactor.actions.background import Aside
        from reactor.actions.catalog import ActionWorld, carry_out
        from reactor.actions.karmada.control_plane import ControlPlane
        from reactor.actions.workload.templates import BusTemplates
        from reactor.execute.executor import Executor

        house = self._house
        aside = await self._stack.enter_async_context(Aside())
        publisher = self._publisher("executor")

        async def query(prometheus: str, promql: str) -> list[Sample]:
            if prometheus not in house.prometheus:
                raise QueryRefused(f"prometheus.{prometheus}: a rule names it, the settings do not")
            return await house.prometheus[prometheus].query(promql)

        plane = ControlPlane(
            house.clusters.get, house.clock, house.settings.karmada.cluster, house.settings.karmada.host
        )
        moving = [rule.name for rule in self._karmada_rules() if isinstance(rule, WorkloadFailover)]
        if moving:
            look = asyncio.create_task(_look_at_karmada(plane, moving), name="karmada")
            self._stack.push_async_callback(partial(ended, patience=STOP_SECONDS), look)
        for rule, unknown in self._strangers():
            log.warning("a rule names clusters that the settings do not", extra={"rule": rule, "cluster": unknown})
        world = ActionWorld(
            house.clock, house.clusters.get, house.settings.notifiers, house.http, instance=house.name, aside=aside,
            templates=BusTemplates(house.bus.store(TEMPLATES), house.clock),
            create_namespaces=house.settings.create_namespaces, karmada=plane, query=query, say=publisher.tell,
            load_balancers=self._balancers.get, route_kinds=house.settings.described_route_kinds,
        )  # fmt: skip
        executor = Executor(
            house.bus, house.clock, publisher, lambda action, context: carry_out(action, world, context),
            concurrency=house.settings.concurrency,
        )  # fmt: skip
        self._run("executor", executor.run)

    def _decide(self) -> None:
        house = self._house
        desk = Desk(house.bus, house.clock, self._routing, house.settings.bus.partitions, house.name, house.signer)
        self.decider = Decider(desk, losses=self._losses)
        keep_running(self._stack, "decider", self.decider.run, house.loops, patience=HAND_OVER_SECONDS)

    async def _router(self) -> None:
        from reactor.alerts.lifecycle import Keeper
        from reactor.alerts.requests import serve
        from reactor.clients.alertmanager import Alertmanager
        from reactor.route.router import Router

        house = self._house
        publisher = self._publisher("router")
        alertmanagers = {name: Alertmanager(name, end) for name, end in house.settings.alertmanager.items()}
        for alertmanager in alertmanagers.values():
            self._stack.push_async_callback(alertmanager.close)

        async def query(prometheus: str, promql: str) -> list[Mapping[str, str]]:
            return [sample.labels for sample in await house.prometheus[prometheus].query(promql)]

        keeper = Keeper(
            sources=[source for source in self._rules.sources if isinstance(source, AlertmanagerWebhook)],
            store=house.bus.store(ALERTS), clock=house.clock, tell=publisher.publish, query=query,
            alertmanagers=alertmanagers,
        )  # fmt: skip
        await self._stack.enter_async_context(keeper)
        await serve(house.bus, keeper, self._stack)
        most = {token(source.name): source.max_targets for source in self._rules.sources}
        router = Router(house.bus, publisher, keeper, house.clock, targets_max=most, signer=house.signer)
        self._run("router", router.run)
        self._run("parked posts", router.run_parked)
        self._run("alert keeper", router.sweep)

    async def _observer(self) -> None:
        from reactor.fleet.observer import KIND, Observer
        from reactor.sources.catalog import MODULES, start_all
        from reactor.sources.context import World
        from reactor.sources.probes.addresses import probing_session
        from reactor.sources.refresh import requests_on

        house, publisher = self._house, self._publisher("observer")

        async def tell(fact: Fact) -> None:
            if not fleet.heard:
                raise Retryable("the others do not hear us, and may observe in our place")
            await publisher.tell(fact)

        probing = await self._stack.enter_async_context(probing_session())
        world = World(
            house.clock, tell, house.clusters, house.prometheus, probing,
            requests=requests_on(house.bus, house.clock), on_facts_lost=house.upkeep.watch,
            load_balancers=self._balancers, described=house.settings.clusters,
            route_kinds=house.settings.described_route_kinds,
            health_scripts=frozenset(house.settings.health_scripts),
            preserved=frozenset(
                path for rule in self._rules.rules if isinstance(rule, WorkloadFailover) for path in paths_of(rule)
            ),
        )  # fmt: skip
        world.scheduler.start()
        self._stack.callback(world.scheduler.shutdown, wait=False)
        jobs: dict[str, Start] = {
            f"source/{source.name}": partial(start_all, [source], world)
            for source in self._rules.sources
            if source.kind in MODULES
        }
        selections = [rule.route for rule in self._rules.rules if isinstance(rule, TrafficFailover)]
        if routes := [one for one in selections if one.in_cluster]:
            jobs["routes"] = partial(start_all, (), world, routes=routes)
        for one in selections:
            if not one.in_cluster and one.name is not None:
                named = {one.name: cast("LoadBalancerKind", one.kind)}
                jobs[f"loadBalancer/{one.name}"] = partial(start_all, (), world, load_balancers=named)
        if karmada := self._karmada_rules():
            selectors = [
                rule.policies.selector for rule in karmada if isinstance(rule, WorkloadFailover) and rule.policies
            ]
            planes = {house.settings.karmada.cluster: selectors}
            jobs["karmada"] = partial(start_all, (), world, karmada=planes)
        jobs |= self._remembering()
        # While rules change, some members know other sources than we do: they share theirs, we share ours, and nobody's
        # are left out. Who knows the same ones is of one fleet.
        known = hashlib.sha256("\0".join(sorted(jobs)).encode()).hexdigest()[:8]
        fleet = Fleet(
            house.bus, house.name, len(jobs), house.clock, kind=f"{KIND}-{known}-", losses=self._losses
        )  # fmt: skip
        self._run("observer", Observer(fleet, jobs).run)

    def _remembering(self) -> dict[str, Start]:
        """A job for each cluster: what workloads look like while they can be read, for when they cannot."""
        from reactor.actions.workload import remembering
        from reactor.actions.workload.templates import BusTemplates

        house = self._house
        rules = [
            rule for rule in self._rules.rules if isinstance(rule, WorkloadFailover) and rule.carrier == "Kubernetes"
        ]
        templates = BusTemplates(house.bus.store(TEMPLATES), house.clock)

        def start(cluster: str) -> Sequence[asyncio.Task[None]]:
            run = partial(
                remembering.run, cluster, rules, clusters=house.clusters.get, templates=templates, clock=house.clock
            )
            return [asyncio.create_task(forever(f"remembering {cluster}", run, house.loops))]

        return {f"remember/{cluster}": partial(start, cluster) for cluster in house.settings.clusters} if rules else {}

    def _strangers(self) -> Iterator[tuple[str, str]]:
        """Give rules that place workloads by our own hand, with the clusters where no hand reaches: misspelt, often."""
        for rule in self._rules.rules:
            if isinstance(rule, WorkloadFailover) and rule.carrier == "Kubernetes":
                unknown = {*clusters_of(rule.placement)} - {"*", *self._house.settings.clusters}
                if unknown:
                    yield rule.name, ", ".join(sorted(unknown))

    def _karmada_rules(self) -> list[WorkloadFailover | ClusterTaint]:
        return [
            rule
            for rule in self._rules.rules
            if isinstance(rule, WorkloadFailover | ClusterTaint) and rule.carrier == "Karmada"
        ]

    def _losses(self) -> int:
        return self._house.bus.connection.losses

    def _publisher(self, role: str) -> Publisher:
        """A publisher that says who it is."""
        house = self._house
        source = f"/reactor/{role}/{house.name}"
        return Publisher(house.bus, self._routing, house.settings.bus.partitions, house.clock, source=source)

    def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        keep_running(self._stack, name, loop, self._house.loops)


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
