"""Consumers that an operator pauses or deletes: the reading notices, logs it once, and goes on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from bus import subjects
from bus.jetstream import JetStreamBus, provision
from bus.jetstream.ordered_reading import OrderedReading
from bus.jetstream.provisioning import paused, resume
from bus.port import Delivery, KeyValueEntry, LogReader
from bus.topology import EXECUTORS, FACTS, GROUPS, Queue
from reactor.runtime.clock import Clock
from tests.contract.bus.test_bus_contract import action, bodies, fact, read_all, take

NOTICED_SECONDS = 30


async def consumers(bus: JetStreamBus, stream: str) -> list[str]:
    found = await bus.connection.api(f"CONSUMER.LIST.{stream}", {})
    return [one["name"] for one in found["consumers"]]


async def pause(bus: JetStreamBus, stream: str, consumer: str) -> None:
    """Pause a consumer as `nats consumer pause` does."""
    until = (Clock().now() + timedelta(hours=6)).isoformat()
    answer = await bus.connection.api(f"CONSUMER.PAUSE.{stream}.{consumer}", {"pause_until": until})
    assert answer["paused"]


async def got(reading: LogReader, count: int) -> list[Delivery]:
    read: list[Delivery] = []
    while len(read) < count:
        read += await reading.next(timedelta(seconds=1))
    return read


async def starve(bus: JetStreamBus, stream: str, consumer: str) -> None:
    """Let it go on, and tell it of nothing that is stored."""
    info = await bus.connection.api(f"CONSUMER.INFO.{stream}.{consumer}", {})
    config: dict[str, Any] = {**info["config"], "filter_subject": "reactor.facts.none.>"}
    await bus.connection.api(
        f"CONSUMER.CREATE.{stream}.{consumer}.{config['filter_subject']}",
        {"stream_name": stream, "config": config, "action": "update"},
    )


@pytest.mark.parametrize("harm", [pause, starve])
async def test_a_reading_whose_consumer_is_held_up_notices_and_goes_on(jetstream: JetStreamBus, harm: Any) -> None:
    await jetstream.publish(fact(1))
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 1)
        [held_up] = await consumers(jetstream, FACTS.name)
        await harm(jetstream, FACTS.name, held_up)
        await jetstream.publish_all([fact(2), fact(3)])
        async with asyncio.timeout(NOTICED_SECONDS):
            assert bodies(await got(reading, 2)) == [b"2", b"3"]
        [told] = jetstream.connection.stalled.values()
        assert held_up in told
        assert "paused or changed" in told
        async with asyncio.timeout(NOTICED_SECONDS):
            while jetstream.connection.stalled:  # until a look has found it right
                await asyncio.sleep(0.05)
        assert held_up not in await consumers(jetstream, FACTS.name)


async def test_a_reading_whose_consumer_was_deleted_goes_on(jetstream: JetStreamBus) -> None:
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        [deleted] = await consumers(jetstream, FACTS.name)
        await jetstream.connection.api(f"CONSUMER.DELETE.{FACTS.name}.{deleted}", {})
        await jetstream.publish(fact(1))
        async with asyncio.timeout(NOTICED_SECONDS):
            assert bodies(await got(reading, 1)) == [b"1"]


async def test_a_watch_whose_consumer_was_paused_goes_on(jetstream: JetStreamBus) -> None:
    store = jetstream.store(GROUPS)
    first = await store.put("3.a", b"1", revision=0)
    async with store.watch("3.*") as changes:
        await anext(changes)
        [paused] = await consumers(jetstream, f"KV_{GROUPS.name}")
        await pause(jetstream, f"KV_{GROUPS.name}", paused)
        second = await store.put("3.a", b"2", revision=first)
        async with asyncio.timeout(NOTICED_SECONDS):
            assert await anext(changes) == KeyValueEntry("3.a", b"2", second)


async def test_a_reader_that_takes_its_time_is_not_taken_for_a_paused_consumer(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.jetstream.reading_watch.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("bus.jetstream.reading_watch.GRACE_SECONDS", 0.2)
    looked: list[int] = []
    look = OrderedReading._look

    async def counted(reading: OrderedReading) -> None:
        await look(reading)
        looked.append(1)

    async def looks(count: int) -> None:
        wanted = len(looked) + count
        async with asyncio.timeout(60):
            while len(looked) < wanted:
                await asyncio.sleep(0.02)

    monkeypatch.setattr(OrderedReading, "_look", counted)
    await jetstream.publish_all([fact(number) for number in range(5)])
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await looks(3)
        assert not jetstream.connection.stalled
        await read_all(reading, 5)
        await jetstream.connection.api(f"STREAM.PURGE.{FACTS.name}", {})
        assert isinstance(reading, OrderedReading)
        await look(reading)
        assert not jetstream.connection.stalled


async def test_what_is_read_while_the_stream_is_asked_for_its_end_was_not_lost(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the answer waits in our own process while messages that came after it are given out."""
    await jetstream.publish(fact(1))
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 1)
        asked = jetstream.connection.api

        async def late(name: str, request: dict[str, Any]) -> dict[str, Any]:
            answer = await asked(name, request)
            if name == f"STREAM.INFO.{FACTS.name}":
                await jetstream.publish(fact(2))
                await got(reading, 1)
            return answer

        monkeypatch.setattr(jetstream.connection, "api", late)
        assert await reading.newest() == 1
        assert reading.position == 2


async def test_a_paused_queue_is_named_and_can_be_resumed(jetstream: JetStreamBus, queue: Queue) -> None:
    fence = await jetstream.acquire_epoch(subjects.owner(3), "owner")
    async with jetstream.work(EXECUTORS, batch=10) as work:
        await pause(jetstream, EXECUTORS.stream, EXECUTORS.name)
        await jetstream.publish(action(1, fence))
        [told] = (await paused(jetstream, [EXECUTORS, queue])).values()
        assert f"{EXECUTORS.stream} > {EXECUTORS.name}: this consumer was paused from outside until" in told
        await resume(jetstream, EXECUTORS)
        assert bodies(await take(work, 1)) == [b"1"]
        assert not await paused(jetstream, [EXECUTORS, queue])


async def test_a_deleted_queue_gives_out_again_what_was_in_it_once_it_is_made(
    jetstream: JetStreamBus, queue: Queue
) -> None:
    fence = await jetstream.acquire_epoch(subjects.owner(3), "owner")
    async with jetstream.work(EXECUTORS, batch=10) as work:
        await jetstream.connection.api(f"CONSUMER.DELETE.{EXECUTORS.stream}.{EXECUTORS.name}", {})
        await jetstream.publish(action(1, fence))
        await provision(jetstream, only_missing=True)
        assert bodies(await take(work, 1)) == [b"1"]
