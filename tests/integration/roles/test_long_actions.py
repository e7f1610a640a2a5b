"""Executor of an action: the one that took it for as long as it lives, and another soon after it died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from unittest.mock import AsyncMock

import pytest

from bus import subjects, topology
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Action, Health, Outcome, ZoneStep, iso
from bus.port import Outgoing
from bus.topology import INTENTS, Queue
from reactor.actions import conditional_write
from reactor.actions.execution import LAND_SECONDS, ExecutionContext
from reactor.actions.zone.isolation_context import CALL_SECONDS, WRITE_SECONDS
from reactor.execute import executor
from reactor.execute.executor import Executor
from reactor.execute.intent import Intent
from tests.integration.roles.conftest import EAST, WEST, World, eventually, is_empty, queue_is, running
from tests.unit.actions.zone.builders import zone_step

Make = Callable[..., AbstractAsyncContextManager[World]]
ACK_WAIT = 1.0
ZONES = """
apiVersion: reactor/v1
rules:
- name: prod-zones
  kind: ZoneIsolation
  mode: {mode}
  cluster: prod
  zones: [{{name: us-east-1a, id: a}}, {{name: us-east-1b, id: b}}, {{name: us-east-1c, id: c}}]
  steps: [Fence, Verify]
"""


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The executors' queue with a tenth of its ack_wait."""
    quick = replace(topology.EXECUTORS, ack_wait=timedelta(seconds=ACK_WAIT))
    monkeypatch.setattr(topology, "QUEUES", (topology.ROUTERS, quick))
    monkeypatch.setattr("reactor.execute.executor.EXECUTORS", quick)
    monkeypatch.setattr("reactor.execute.executor.EXTEND", ACK_WAIT / 3)
    return quick


async def ask_for_a_failover(world: World) -> None:
    await world.list_route(checkout=1, checkout_west=0)
    await world.see(EAST, Health.HEALTHY)
    await world.see(WEST, Health.HEALTHY)
    await world.see(EAST, Health.UNHEALTHY)


async def test_an_action_that_takes_long_is_not_given_to_another(make_world: Make, queue: Queue) -> None:
    began: list[str] = []
    done = asyncio.Event()

    async with make_world() as world:

        async def slow(action: Action, _: ExecutionContext) -> Outcome:
            began.append(action.id)
            await asyncio.sleep(4 * ACK_WAIT)
            done.set()
            return Outcome(action=action.id, status="Done", observed_at=world.clock.now())

        one, two = (Executor(world.bus, world.clock, world.publisher, slow) for _ in range(2))
        async with running(one.run), running(two.run), world.decider("decider"):
            await ask_for_a_failover(world)
            async with asyncio.timeout(60):
                await done.wait()
    assert len(began) == 1


@pytest.mark.alone
async def test_an_action_in_dead_hands_is_carried_out_by_another_once(make_world: Make, queue: Queue) -> None:
    async with make_world() as world, world.decider("decider"):
        async with world.bus.work(queue, batch=1) as dead:
            await ask_for_a_failover(world)
            [taken] = await dead.next(timedelta(seconds=10))
            died = world.clock.monotonic()
        async with world.executor(), world.executor():
            await world.next_write()
            waited = world.clock.monotonic() - died
            await queue_is(world.bus, queue, is_empty)  # no executor is given it once more
            assert len(world.written) == 1
    print(f"ack_wait {ACK_WAIT:g} s: carried out by another after {waited:.2f} s")
    assert not taken.redelivered
    assert waited < ACK_WAIT + 1


async def ask(world: World, action: ZoneStep) -> None:
    """Publish an action as a decider does."""
    body = encode(action, id=action.id, source="/test", time=world.clock.now())
    await world.bus.publish_all([Outgoing(subjects.action(0, "ZoneStep", action.object), body, action.id)])


async def test_a_zones_step_back_waits_in_every_process_for_the_step_that_it_undoes(make_world: Make) -> None:
    """The world that an undo reads must hold the last write of what it undoes."""
    order: list[str] = []
    go_on = asyncio.Event()
    async with make_world(rule=ZONES) as world:

        async def carry_out(action: Action, _: ExecutionContext) -> Outcome:
            assert isinstance(action, ZoneStep)
            order.append(f"{'undo' if action.undo else 'do'} begins")
            if not action.undo:
                await go_on.wait()
            order.append(f"{'undo' if action.undo else 'do'} ends")
            status = "Done" if action.undo else "Failed"
            return Outcome(action=action.id, status=status, reason="InProgress", observed_at=world.clock.now())  # type: ignore[arg-type]

        one, two = (Executor(world.bus, world.clock, world.publisher, carry_out, concurrency=1) for _ in range(2))
        async with world.answers(), running(one.run):
            await ask(world, zone_step("CutNetwork", generation=1, decided_at=world.clock.now()))
            await eventually(lambda: order == ["do begins"])
            await ask(world, zone_step("CutNetwork", undo=True, generation=2, decided_at=world.clock.now()))
            async with running(two.run):
                await asyncio.sleep(executor.AGAIN.total_seconds())  # it has looked by now, and may not
                assert order == ["do begins"]
                go_on.set()
                await eventually(lambda: "undo ends" in order)
    assert order == ["do begins", "do ends", "undo begins", "undo ends"]


@pytest.mark.alone
async def test_a_step_in_dead_hands_keeps_the_step_back_waiting_no_longer_than_it_may_be_at_work(
    make_world: Make,
) -> None:
    async with make_world(rule=ZONES) as world:
        step = zone_step("CutNetwork", generation=1)
        died = world.clock.now()
        left = Intent(1, 1, step.id, done=False, until=iso(died + timedelta(seconds=3)))
        await world.bus.store(INTENTS).put(subjects.key(step.rule, step.object), left.dump(), revision=0)
        await ask(world, zone_step("CutNetwork", undo=True, generation=2, decided_at=died))
        async with world.answers(), world.executor():
            assert (await world.next_write()).generation == 2
            waited = world.clock.now() - died
    assert timedelta(seconds=3) <= waited < timedelta(seconds=3) + 2 * executor.AGAIN


@pytest.mark.alone
async def test_a_process_that_dies_in_a_step_keeps_the_step_back_waiting_no_longer_than_it_may_be_at_work(
    make_world: Make, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 15 s (below); here three."""
    monkeypatch.setattr(executor, "AT_WORK", timedelta(seconds=3))
    begun, undone = asyncio.Event(), asyncio.Event()

    async def carry_out(action: Action, _: ExecutionContext) -> Outcome:
        assert isinstance(action, ZoneStep)
        (undone if action.undo else begun).set()
        if not action.undo:
            await asyncio.sleep(60)
        return Outcome(action=action.id, status="Done", observed_at=world.clock.now())

    killed_bus = JetStreamBus.connect(server.url, name="killed", timeout=timedelta(seconds=0.5))
    async with make_world(rule=ZONES) as world, world.answers(), killed_bus as bus:
        killed = Executor(bus, world.clock, world.publisher, carry_out)
        monkeypatch.setattr(killed, "_store_stop", AsyncMock())  # who is killed stores no last word
        async with running(killed.run):
            await ask(world, zone_step("CutNetwork", generation=1, decided_at=world.clock.now()))
            await begun.wait()
            died = world.clock.now()
            await bus.connection.client.close()
            await ask(world, zone_step("CutNetwork", undo=True, generation=2, decided_at=died))
            async with running(Executor(world.bus, world.clock, world.publisher, carry_out).run):
                async with asyncio.timeout(60):
                    await undone.wait()
                waited = world.clock.now() - died
    assert timedelta(seconds=1) < waited < timedelta(seconds=3) + executor.AGAIN


@pytest.mark.alone
async def test_a_clean_stop_in_the_middle_of_a_step_keeps_the_step_back_waiting_for_nothing(make_world: Make) -> None:
    async with make_world(rule=ZONES) as world:
        begun, order = asyncio.Event(), list[int]()

        async def carry_out(action: Action, _: ExecutionContext) -> Outcome:
            order.append(action.generation)
            if action.generation == 1:
                begun.set()
                await asyncio.sleep(60)
            return Outcome(action=action.id, status="Done", observed_at=world.clock.now())

        async with running(Executor(world.bus, world.clock, world.publisher, carry_out).run):
            await ask(world, zone_step("CutNetwork", generation=1, decided_at=world.clock.now()))
            await begun.wait()
        stopped = world.clock.monotonic()
        await ask(world, zone_step("CutNetwork", undo=True, generation=2, decided_at=world.clock.now()))
        async with running(Executor(world.bus, world.clock, world.publisher, carry_out).run):
            await eventually(lambda: 2 in order)
        assert world.clock.monotonic() - stopped < 2 * executor.AGAIN.total_seconds()


async def test_a_clean_stop_with_a_write_on_its_way_keeps_the_step_back_waiting_until_it_has_landed(
    make_world: Make,
) -> None:
    async with make_world(rule=ZONES) as world:
        sent = asyncio.Event()

        async def never_answered() -> None:
            sent.set()
            await asyncio.sleep(60)

        async def carry_out(action: Action, context: ExecutionContext) -> Outcome:
            await context.write("replace_network_acl_association", never_answered)
            return Outcome(action=action.id, status="Done", observed_at=world.clock.now())

        step = zone_step("CutNetwork", generation=1, decided_at=world.clock.now())
        async with running(Executor(world.bus, world.clock, world.publisher, carry_out).run):
            await ask(world, step)
            await sent.wait()
        entry = await world.bus.store(INTENTS).get(subjects.key(step.rule, step.object))
        assert Intent.read(entry.value).left(world.clock.now()) > timedelta(seconds=5)


def test_a_step_is_at_work_for_as_long_as_its_last_write_may_be_on_its_way() -> None:
    storing_the_intent = 1.0
    call = storing_the_intent + CALL_SECONDS + WRITE_SECONDS + LAND_SECONDS
    assert timedelta(seconds=call) <= executor.AT_WORK <= timedelta(seconds=15)


def test_a_change_of_weights_is_in_flight_for_longer_than_it_may_take_to_settle() -> None:
    assert executor.IN_HANDS.total_seconds() > conditional_write.SETTLE_SECONDS
