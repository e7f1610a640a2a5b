"""The processes of one run: what each of them runs, and who is started after whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from bus.messages import (
    Action,
    CancelEviction,
    Evict,
    Outcome,
    Place,
    Purge,
    SetTaints,
    SetWeights,
    ZoneStep,
)
from bus.topology import GROUPS
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.traffic import route_weights
from reactor.decide.decider import Decider
from reactor.decide.partition_context import PartitionContext
from reactor.execute.executor import Executor
from reactor.route.publisher import FactPublisher
from reactor.runtime.supervise import forever
from rules.engine.routing import Routing
from tests.simulation.fleet.answers import AnswerSeen, answer_rules
from tests.simulation.fleet.bus import SimBus
from tests.simulation.fleet.clock import SimClock
from tests.simulation.fleet.cluster import Api, Cluster
from tests.simulation.fleet.clusters import carry_taints
from tests.simulation.fleet.loop import VirtualLoop
from tests.simulation.fleet.orders import OrderSeen, order_zones
from tests.simulation.fleet.people import PauseSeen, Speaker, pause_rules
from tests.simulation.fleet.process import Process
from tests.simulation.fleet.reload import Begin, EditedFiles, RunningRoles, rules
from tests.simulation.fleet.scenario import Roles, Scenario
from tests.simulation.fleet.server import Server
from tests.simulation.fleet.source import Source
from tests.simulation.fleet.workloads import Workloads, carry_workload
from tests.simulation.fleet.zones import IsolatedZones, carry_step

PARTITIONS = 4
SOURCE = "source"
BEGINNINGS = 1.5
"""Seconds over which the fleet is started."""
PATIENCE = 50
"""Turns of the loop in which a killed process's cleanup must have come to its end."""


@dataclass(frozen=True, slots=True)
class CommandsSeen:
    """Commands of people as they came about."""

    pauses: list[PauseSeen] = field(default_factory=list)
    answers: list[AnswerSeen] = field(default_factory=list)
    orders: list[OrderSeen] = field(default_factory=list)


class Fleet:
    """All processes, and the servers that they talk to."""

    def __init__(
        self, scenario: Scenario, loop: VirtualLoop, cluster: Cluster, zones: IsolatedZones,
        workloads: Workloads, traced: Callable[[str, str], None],
        files: EditedFiles, healthy: Callable[[], Mapping[str, bool]],
    ) -> None:  # fmt: skip
        self._scenario, self._loop, self.cluster, self._traced = scenario, loop, cluster, traced
        self._zones, self._workloads = zones, workloads
        self._files, self._healthy = files, healthy
        self.clock = SimClock(loop)
        self.server = Server(self.clock.now)
        self.roles: dict[str, Roles | None] = {SOURCE: None, **dict(scenario.reactors)}
        self.running: dict[str, Process] = {}
        self._work: dict[str, RunningRoles] = {}
        self._starts: dict[str, int] = {}
        self._all: list[Process] = []

    def start_all(self) -> None:
        """Start all processes, one after the other."""
        random = Random(f"beginnings {self._scenario.seed}")
        for who in self.roles:
            self._loop.later(random.uniform(0, BEGINNINGS), self.start, who)

    def start(self, who: str, name: str | None = None) -> Process:
        """Start a process in this place."""
        number = self._starts[who] = self._starts.get(who, 0) + 1
        seed = f"{self._scenario.seed}/{who}/{number}"
        process = Process(self._loop, name or who, seed, skew=self._scenario.skew, tell=self._traced)
        self.running[who] = process
        self._all.append(process)
        begin = self._look(process, seed) if self.roles[who] is None else self._reactor(who, process, seed)
        self._work[who] = RunningRoles(process, lambda: self._files.take(who), begin)
        return process

    def people(self, commands: CommandsSeen) -> None:
        """Let people give their commands. They have a connection of their own, and are in no trouble but the bus's.

        `commands`: takes what came about.
        """
        seed = f"{self._scenario.seed}/people"
        process = Process(self._loop, "people", seed, skew=self._scenario.skew, tell=self._traced)
        self._all.append(process)
        bus = SimBus(self.server, process.bus, process)
        publisher = self._publisher(process, bus, rules(self._scenario, 0.0))
        speaker = Speaker(publisher, process.clock, self._loop)
        process.start(lambda: pause_rules(speaker, self._scenario.pauses, commands.pauses))
        process.start(lambda: order_zones(speaker, self._scenario.orders, commands.orders))
        process.start(lambda: answer_rules(speaker, bus.store(GROUPS), self._scenario.answers, commands.answers))

    def reload(self, who: str) -> None:
        """Let the process in this place, if there is one, take the rules that are on its disk."""
        if who in self._work:
            self._work[who].reload()

    def _look(self, process: Process, seed: str) -> Begin:
        bus, sources = SimBus(self.server, process.bus, process), list[Source]()

        def begin(routing: Routing) -> list[asyncio.Task[None]]:
            publisher = self._publisher(process, bus, routing)
            if sources:  # it looks on: what it has seen without a break goes on for all rules
                sources[0].route_by(publisher)
                return []
            looks = Random(f"{seed} look")
            stamped = self._scenario.stamped
            source = Source(
                bus, publisher, process.clock, self.cluster, self._healthy, looks, stamped=stamped,
                zones=self._zones, workloads=self._workloads,
            )  # fmt: skip
            sources.append(source)
            process.start(lambda: forever("source", sources[0].run))
            return []

        return begin

    def _reactor(self, who: str, process: Process, seed: str) -> Begin:
        bus, roles = SimBus(self.server, process.bus, process), self.roles[who]
        carry_out = self._carrier(process, seed)

        def begin(routing: Routing) -> list[asyncio.Task[None]]:
            tasks = []
            if roles in ("all", "decider"):
                decider = Decider(PartitionContext(bus, process.clock, routing, PARTITIONS, process.name))
                tasks.append(process.start(lambda: forever("decider", decider.run)))
            if roles in ("all", "executor"):
                executor = Executor(bus, process.clock, self._publisher(process, bus, routing), carry_out)
                tasks.append(process.start(lambda: forever("executor", executor.run)))
            return tasks

        return begin

    def _publisher(self, process: Process, bus: SimBus, routing: Routing) -> FactPublisher:
        return FactPublisher(bus, routing, PARTITIONS, process.clock, source=f"/{process.name}")

    def _carrier(self, process: Process, seed: str) -> Callable[[Action, ExecutionContext], Awaitable[Outcome]]:
        api = Api(self.cluster, process.api, Random(f"{seed} api"))

        async def carry_out(action: Action, context: ExecutionContext) -> Outcome:
            if isinstance(action, ZoneStep):
                return await carry_step(self._zones, action, process.api, process.clock, context)
            if isinstance(action, SetTaints):
                return await carry_taints(action, api, process.clock, context)
            if isinstance(action, Place | Evict | Purge | CancelEviction):
                return await carry_workload(self._workloads, action, process.api, process.clock, context)
            assert isinstance(action, SetWeights)
            if not self._scenario.stamped:
                await context.write(action.id, lambda: self.cluster.set_weights(action))
                return Outcome(action=action.id, status="Done", observed_at=process.clock.now())
            return await route_weights.carry_out(
                GuardedKube(api, context), action, process.clock, instance=process.name
            )

        return carry_out

    async def end(self) -> None:
        """Kill all processes, and wait until nothing is left."""
        for process in self._all:
            process.kill()
        for _ in range(PATIENCE):
            await asyncio.sleep(0)
            left = [task for process in self._all for task in process.leftovers()]
            if not left:
                return
            for task in left:
                task.cancel()
        raise AssertionError(f"killed, and still there: {left[:3]}")
