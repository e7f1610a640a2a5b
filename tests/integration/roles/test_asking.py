"""Executors write nothing for which the decider's last yes is not fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

from bus import topology
from bus.messages import Action, Health, Outcome
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import failed
from reactor.execute.executor import Executor
from reactor.runtime.errors import ReactorError
from tests.integration.roles.conftest import EAST, WEST, World, eventually, queue_is, running
from tests.integration.roles.test_executing import action, ask, outcome

Make = Callable[..., AbstractAsyncContextManager[World]]
OLD = -2.0
"""Decided so many seconds ago: the yes that it came with is no longer fresh."""


async def test_what_was_decided_a_moment_ago_is_done_without_a_question(make_world: Make) -> None:
    async with make_world() as world, world.answers() as asked, world.executor():
        await ask(world, action(world), "m")
        await world.next_write()
        assert asked == []


async def test_what_has_waited_is_done_if_its_decider_still_wants_it(make_world: Make) -> None:
    async with make_world() as world, world.answers() as asked, world.executor():
        waited = action(world, late=OLD)
        await ask(world, waited, "m")
        assert (await outcome(world, waited)).status == "Done"
        assert asked == [waited.id]


async def test_what_was_in_other_hands_is_not_carried_out_if_it_is_no_longer_wanted(make_world: Make) -> None:
    async with make_world() as world:
        asked_for = action(world)
        async with world.bus.work(topology.EXECUTORS, batch=1) as other:
            await ask(world, asked_for, "m")
            [taken] = await other.next(timedelta(seconds=60))
            await other.nak(taken, timedelta(0))
        async with world.answers(lambda _: False) as asked, world.executor():
            refused = await outcome(world, asked_for)
        assert (refused.status, refused.reason, refused.detail) == ("Refused", "CalledOff", "the test says so")
        assert (asked, world.written) == ([asked_for.id], [])


@pytest.mark.alone
async def test_an_action_waits_until_its_decider_answers_and_is_then_done_within_a_second(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        waited = action(world, late=OLD)
        await ask(world, waited, "m")
        # It has been asked about, in vain, and is given again.
        await queue_is(world.bus, topology.EXECUTORS, lambda queue: queue["num_redelivered"] > 0)
        assert world.written == []
        async with world.answers():
            began = world.clock.monotonic()
            assert await world.next_write() == waited
            assert world.clock.monotonic() - began < 1


async def test_what_is_called_off_behind_a_slow_api_is_not_written(make_world: Make) -> None:
    """A read of two seconds, and then the write: the decider is asked again in between."""
    async with make_world() as world:
        wrote: list[str] = []

        async def send() -> None:
            wrote.append("PATCH")

        async def slow(one: Action, context: ExecutionContext) -> Outcome:
            await asyncio.sleep(1.5)
            try:
                await context.write("PATCH", send)
            except ReactorError as error:
                return failed(one.id, world.clock, error)
            return Outcome(action=one.id, status="Done", observed_at=world.clock.now())

        executor = Executor(world.bus, world.clock, world.publisher, slow)
        async with world.answers(lambda _: False) as asked, running(executor.run):
            fresh = action(world)
            await ask(world, fresh, "m")
            assert (await outcome(world, fresh)).reason == "CalledOff"
        assert (asked, wrote) == ([fresh.id], [])


@pytest.mark.alone
async def test_what_a_frozen_executor_had_is_written_by_another_within_twelve_seconds_if_a_real_decider_wants_it(
    make_world: Make,
) -> None:
    async with make_world() as world, world.decider("one"):
        async with world.bus.work(topology.EXECUTORS, batch=1) as frozen:
            await ask_for_a_failover(world)
            [_] = await frozen.next(timedelta(seconds=10))
            stood_still = world.clock.monotonic()
            async with world.executor():
                await eventually(lambda: bool(world.written), within=15)
            took = world.clock.monotonic() - stood_still
        print(f"in frozen hands: written by another after {took:.2f} s")
        assert took < 12


async def test_what_a_frozen_executor_had_is_not_written_by_another_after_its_target_has_recovered(
    make_world: Make,
) -> None:
    async with make_world() as world, world.decider("one") as decider:
        async with world.bus.work(topology.EXECUTORS, batch=1) as frozen:
            await ask_for_a_failover(world)
            [_] = await frozen.next(timedelta(seconds=10))
            await world.see(EAST, Health.HEALTHY)
            async with world.executor():
                await eventually(lambda: not any(group.outbox for group in decider.groups()))
        assert 1 not in [one.generation for one in world.written], "only the way back may be written"


async def ask_for_a_failover(world: World) -> None:
    await world.list_route(checkout=1, checkout_west=0)
    await world.see(EAST, Health.HEALTHY)
    await world.see(WEST, Health.HEALTHY)
    await world.see(EAST, Health.UNHEALTHY)
