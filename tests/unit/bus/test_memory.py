"""Behaviour of the bus in memory beyond the contract."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bus import subjects
from bus.errors import Unavailable
from bus.port import Outgoing
from bus.testing.memory import MemoryBus
from bus.topology import DUPLICATE_WINDOW, FACTS, GROUPS, ROUTERS

START = datetime(2026, 1, 1, tzinfo=UTC)
FACT = Outgoing(subjects.fact(3, "observation", "t"), b"1", "1")
NOW = timedelta(0)


async def test_messages_are_stored_at_the_time_it_is_given() -> None:
    bus = MemoryBus(lambda: START)
    await bus.publish(FACT)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        [one] = await reading.next(NOW)
    assert one.stored_at == START


async def test_an_id_is_forgotten_when_the_duplicate_window_is_over() -> None:
    time = START
    bus = MemoryBus(lambda: time)
    first = await bus.publish(FACT)
    time += DUPLICATE_WINDOW - timedelta(microseconds=1)
    assert await bus.publish(FACT) == first
    time += timedelta(microseconds=1)
    assert await bus.publish(FACT) > first


async def test_a_bus_that_is_down_answers_no_client_and_goes_on_later() -> None:
    bus = MemoryBus(lambda: START)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        await bus.publish(FACT)
        bus.down = True
        for call in (bus.publish(FACT), bus.probe(), bus.store(GROUPS).get("a"), bus.store(GROUPS).entries(">")):
            with pytest.raises(Unavailable):
                await call
        assert await bus.is_present(subjects.alive("reactor-3"), NOW) is None
        assert not reading.current
        assert not await reading.next(NOW)
        bus.down = False
        assert [one.body for one in await reading.next(NOW)] == [b"1"]


async def test_what_was_given_out_too_often_is_quarantined() -> None:
    bus = MemoryBus(lambda: START)
    queue = replace(ROUTERS, max_deliver=3)
    await bus.publish(Outgoing(subjects.observation("probe", "t"), b"1", "1"))
    async with bus.work(queue, batch=1) as work:
        for _ in range(queue.max_deliver):
            [one] = await work.next(NOW)
            await work.nak(one, NOW)
        assert not await work.next(NOW)
