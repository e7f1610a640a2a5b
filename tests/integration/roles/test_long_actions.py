"""Who carries an action out: the one who took it for as long as it lives, and another soon after it died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from bus import topology
from bus.messages import Action, Health, Outcome
from bus.topology import Queue
from reactor.roles.executor import Executor
from tests.integration.roles.conftest import EAST, WEST, World, eventually, running

Make = Callable[..., AbstractAsyncContextManager[World]]
ACK_WAIT = 1.0


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The executors' queue with a tenth of its ack_wait."""
    quick = replace(topology.EXECUTORS, ack_wait=timedelta(seconds=ACK_WAIT))
    monkeypatch.setattr(topology, "QUEUES", (topology.ROUTERS, quick))
    monkeypatch.setattr("reactor.roles.executor.EXECUTORS", quick)
    monkeypatch.setattr("reactor.roles.executor.EXTEND", ACK_WAIT / 3)
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

        async def slow(action: Action) -> Outcome:
            began.append(action.id)
            await asyncio.sleep(4 * ACK_WAIT)
            done.set()
            return Outcome(action=action.id, status="Done", observed_at=world.clock.now())

        one, two = (Executor(world.bus, world.clock, world.publisher, slow) for _ in range(2))
        async with running(one.run), running(two.run), world.decider("decider"):
            await ask_for_a_failover(world)
            async with asyncio.timeout(10 * ACK_WAIT):
                await done.wait()
    assert len(began) == 1


async def test_an_action_in_dead_hands_is_carried_out_by_another_once(make_world: Make, queue: Queue) -> None:
    async with make_world() as world, world.decider("decider"):
        async with world.bus.work(queue, batch=1) as dead:
            await ask_for_a_failover(world)
            [taken] = await dead.next(timedelta(seconds=10))
            died = world.clock.monotonic()
        async with world.executor(), world.executor():
            await world.next_write()
            waited = world.clock.monotonic() - died
            await asyncio.sleep(2 * ACK_WAIT)
            await eventually(lambda: len(world.written) == 1)
    print(f"ack_wait {ACK_WAIT:g} s: carried out by another after {waited:.2f} s")
    assert not taken.redelivered
    assert waited < ACK_WAIT + 1
