"""A real bus, and deciders and executors on it, as a process has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.messages import Action, Backend, Health, Observation, Outcome, Route, WantedReply, WantedRequest
from bus.port import Bus
from bus.topology import Queue
from reactor.actions.execution import ExecutionContext
from reactor.decide.decider import Decider
from reactor.decide.partition_context import PartitionContext
from reactor.execute.executor import Executor
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing
from rules.loader import load_rules

PARTITIONS = 8
EAST, WEST = "service/east/shop/checkout", "service/west/shop/checkout"
RULE = """
apiVersion: reactor/v1
rules:
- name: checkout
  kind: TrafficFailover
  mode: {mode}
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}}
  backends:
    - {{service: checkout, target: service/east/shop/checkout}}
    - {{service: checkout-west, target: service/west/shop/checkout}}
  tolerationSeconds: {toleration}
"""


@dataclass
class World:
    """Bus, clock and rules of a test, and the actions that its executors carried out."""

    bus: Bus
    clock: Clock
    routing: Routing
    publisher: FactPublisher
    written: list[Action] = field(default_factory=list)
    wrote: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Callable[[Action], Outcome] | None = None

    async def carry_out(self, action: Action, context: ExecutionContext) -> Outcome:  # noqa: ARG002 - a carrier's shape
        """Take the action down, and answer Done unless the test answers otherwise."""
        self.written.append(action)
        self.wrote.set()
        if self.answer is not None:
            return self.answer(action)
        return Outcome(action=action.id, status="Done", observed_at=self.clock.now())

    async def next_write(self, within: float = 60.0) -> Action:
        """Wait for the next write."""
        async with asyncio.timeout(within):
            await self.wrote.wait()
        self.wrote.clear()
        return self.written[-1]

    async def see(self, target: str, status: Health) -> None:
        """Publish what a source would say."""
        await self.publisher.publish(Observation(target=target, status=status, observed_at=self.clock.now()))

    async def list_route(self, **weights: int) -> None:
        """Publish the route's current state."""
        backends = tuple(Backend(service=name.replace("_", "-"), weight=weight) for name, weight in weights.items())
        route = Route(
            cluster="east", kind="TrafficSplit", namespace="shop", name="checkout", backends=backends,
            observed_at=self.clock.now(),
        )  # fmt: skip
        await self.publisher.publish(route)

    def shared(self, name: str) -> PartitionContext:
        """Context that a process of this name would share among its partitions."""
        return PartitionContext(self.bus, self.clock, self.routing, PARTITIONS, name)

    @asynccontextmanager
    async def decider(self, name: str) -> AsyncIterator[Decider]:
        """A decider at work."""
        decider = Decider(self.shared(name))
        async with running(decider.run):
            yield decider

    @asynccontextmanager
    async def answers(self, wanted: Callable[[WantedRequest], bool] = lambda _: True) -> AsyncIterator[list[str]]:
        """Answer executors in the place of deciders. Gives the ids of the actions that they ask about."""
        asked: list[str] = []

        async def answer(body: bytes) -> bytes:
            question = WantedRequest.model_validate_json(body)
            asked.append(question.action)
            reply = WantedReply(wanted=wanted(question), detail="the test says so", at=self.clock.now())
            return reply.model_dump_json(by_alias=True).encode()

        stops = [await self.bus.listen(subjects.wanted(number), answer) for number in range(PARTITIONS)]
        try:
            yield asked
        finally:
            for stop in stops:
                await stop()

    @asynccontextmanager
    async def executor(self) -> AsyncIterator[None]:
        """An executor at work."""
        executor = Executor(self.bus, self.clock, self.publisher, self.carry_out)
        async with running(executor.run):
            yield


@asynccontextmanager
async def running(loop: Callable[[], Awaitable[None]]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a loop beside the block, and stop it as a process would."""

    async def run() -> None:
        await loop()

    task = asyncio.create_task(run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(holds: Callable[[], bool], within: float = 60.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(within):
        while not holds():  # what is waited for has no event of its own
            await asyncio.sleep(0.01)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test's own."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def make_world(server: EmbeddedServer) -> Callable[..., object]:
    """Make a world with a rule of this mode and toleration, or with another one."""

    @asynccontextmanager
    async def make(*, mode: str = "Enforce", toleration: float = 0.0, rule: str = RULE) -> AsyncIterator[World]:
        rules = load_rules([("shop.yaml", rule.format(mode=mode, toleration=toleration))])
        routing, clock = Routing(rules.rules), Clock()
        async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
            await provision(bus)
            yield World(bus, clock, routing, FactPublisher(bus, routing, PARTITIONS, clock, source="/test"))

    return make


async def queue_is(bus: Bus, queue: Queue, holds: Callable[[Mapping[str, Any]], bool], within: float = 60.0) -> None:
    """Wait until the server's own account of a queue (CONSUMER.INFO) is so."""
    assert isinstance(bus, JetStreamBus)
    async with asyncio.timeout(within):
        while not holds(await bus.connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {})):
            await asyncio.sleep(0.02)


def is_empty(queue: Mapping[str, Any]) -> bool:
    """Nothing waits in it, and nothing is in flight: nothing that is in it now can be given again."""
    return bool(queue["num_pending"] == 0 and queue["num_ack_pending"] == 0)
