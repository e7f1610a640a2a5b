"""A global stop on a real bus, while executors have more to do than they can."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import yaml

from bus import topology
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.messages import Action, Backend, Fact, Health, Observation, Outcome, Pause, Resume, Route
from reactor.actions.execution import ExecutionContext
from reactor.execute.executor import Executor
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.integration.roles.conftest import PARTITIONS, World, eventually, is_empty, queue_is, running

ROUTES = [f"web-{number}" for number in range(12)]
WRITE_SECONDS = 0.5
HONOURED = 2.0


def document() -> str:
    rules = [
        {
            "name": name, "kind": "TrafficFailover", "mode": "Enforce", "tolerationSeconds": 0,
            "route": {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": name},
            "backends": [{"service": name}, {"service": "spare"}],
        }
        for name in ROUTES
    ]  # fmt: skip
    return yaml.safe_dump({"apiVersion": "reactor/v1", "rules": rules})


async def test_a_global_stop_is_honoured_within_two_seconds_whatever_still_waits_in_the_queue(
    server: EmbeddedServer,
) -> None:
    routing, clock = Routing(load_rules([("shop.yaml", document())]).rules), Clock()
    began: dict[str, float] = {}

    async def slow(action: Action, _: ExecutionContext) -> Outcome:
        began[action.object] = clock.monotonic()
        await asyncio.sleep(WRITE_SECONDS)
        return Outcome(action=action.id, status="Done", observed_at=clock.now())

    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        await provision(bus)
        publisher = FactPublisher(bus, routing, PARTITIONS, clock, source="/test")
        world = World(bus, clock, routing, publisher)
        executor = Executor(bus, clock, publisher, slow, concurrency=1)

        async def say(*facts: Fact) -> None:
            for fact in facts:
                await publisher.publish(fact)

        async with world.decider("decider") as decider, running(executor.run):
            await say(*(_route(name, clock) for name in ROUTES))
            await say(*(_seen(name, Health.HEALTHY, clock) for name in ("spare", *ROUTES)))
            await say(*(_seen(name, Health.UNHEALTHY, clock) for name in ROUTES))
            await eventually(lambda: len(began) >= 2, within=30)
            await say(Pause(rule="*", by="ann", reason="INC-7", observed_at=clock.now()))
            stopped = clock.monotonic()
            await queue_is(bus, topology.EXECUTORS, is_empty)  # nothing of what was asked for is left to be done
            late = {name: at - stopped for name, at in began.items() if at - stopped > HONOURED}
            assert late == {}
            assert len(began) < len(ROUTES), "the queue was empty before the stop"
            print(f"the last write began {max(began.values()) - stopped:.2f} s after the stop; {len(began)} of 12 done")
            assert all(group.paused for group in decider.groups())

            done = set(began)
            await say(Resume(rule="*", by="ann", observed_at=clock.now()))
            await eventually(lambda: len(began) == len(ROUTES), within=30)
            assert {name: at for name, at in began.items() if name in done and at > stopped + HONOURED} == {}


def _route(name: str, clock: Clock) -> Route:
    backends = (Backend(service=name, weight=1), Backend(service="spare", weight=0))
    return Route(
        cluster="east", kind="TrafficSplit", namespace="shop", name=name, backends=backends, observed_at=clock.now()
    )


def _seen(service: str, status: Health, clock: Clock) -> Observation:
    return Observation(target=f"service/east/shop/{service}", status=status, observed_at=clock.now())
