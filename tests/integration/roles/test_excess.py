"""A publisher on a real bus that says more than it may: all of it is decided once, and none before others' words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode, encode
from bus.jetstream import JetStreamBus, provision
from bus.messages import Delayed, Excess, Health, Observation
from bus.port import Delivery, Outgoing
from bus.topology import EXCESS, FACTS, INBOX
from reactor.route.excess import OTHERS_FIRST_SECONDS, PACK_MAX, packed
from reactor.route.publisher import FactPublisher
from reactor.route.router import Router
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.integration.roles.conftest import PARTITIONS, RULE, eventually, running
from tests.integration.roles.test_routing import Posts

TARGET = "service/east/shop/checkout"
AT_ONCE = 100
COUNT = 1000
WAIT = timedelta(seconds=1)
LOOK = 0.02
"""Seconds between two questions to the server, which needs its processor for what is waited for."""


@pytest.fixture
async def bus(server: EmbeddedServer) -> AsyncIterator[JetStreamBus]:
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        await provision(bus)
        yield bus


def router(bus: JetStreamBus) -> Router:
    routing = Routing(load_rules([("shop.yaml", RULE.format(mode="DryRun", toleration=0))]).rules)
    publisher = FactPublisher(bus, routing, PARTITIONS, Clock(), source="/test")
    return Router(bus, publisher, Posts(), Clock(), at_once=AT_ONCE)


def said(source: str, number: int) -> Outgoing:
    now = Clock().now()
    seen = Observation(target=TARGET, status=Health.UNHEALTHY, signal=source, observed_at=now)
    id_ = f"{source}-{number}"
    return Outgoing(subjects.observation(source, TARGET), encode(seen, id=id_, source="/test", time=now), id_)


def delivery(number: int) -> Delivery:
    one = said("chatty", number)
    return Delivery(one.subject, one.body, number + 1, Clock().now(), 0)


async def heard(bus: JetStreamBus) -> list[str]:
    """The ids that publishers gave, in the order in which they became facts."""
    bounds, ids = await bus.extent(FACTS), []
    async with bus.read(FACTS, f"{subjects.ROOT}.facts.>", after=0) as reading:
        while reading.position < bounds.last:
            ids += [decode(one.body).id.rpartition("/")[2] for one in await reading.next(WAIT)]
    return ids


async def test_what_a_publisher_says_too_fast_waits_and_what_another_says_does_not(bus: JetStreamBus) -> None:
    await bus.publish_all([*(said("chatty", number) for number in range(COUNT)), said("quiet", 0)])
    before = telemetry.observations_delayed._value.get()
    one = router(bus)
    async with running(one.run):
        await eventually(lambda: telemetry.observations_delayed._value.get() - before >= COUNT / 2)

        async def routed() -> bool:
            inbox = await bus.extent(INBOX)
            return inbox.first > inbox.last

        while not await routed():
            await asyncio.sleep(LOOK)
        ids = await heard(bus)
        assert "quiet-0" in ids
        assert len(ids) < COUNT / 2
        async with running(one.excess.run):
            while (left := await bus.extent(EXCESS)).first <= left.last:
                await asyncio.sleep(LOOK)
    ids = await heard(bus)
    assert sorted(ids) == sorted([*(f"chatty-{number}" for number in range(COUNT)), "quiet-0"])


async def test_while_the_inbox_is_behind_a_piece_of_the_excess_is_routed_in_a_second(bus: JetStreamBus) -> None:
    """It waits for what others say, and not without end."""
    await bus.publish_all(packed([delivery(number) for number in range(3 * PACK_MAX)]))
    left = await bus.extent(EXCESS)
    assert left.last - left.first + 1 == 3
    one = router(bus)
    one._pace.behind = True
    began = Clock()
    start = began.monotonic()
    async with running(one.excess.run):
        times = []
        while left.first <= left.last:
            if (now := await bus.extent(EXCESS)).first > left.first:
                times.append(began.monotonic() - start)
                if len(times) == 2:
                    one._pace.behind = False
            left = now
            await asyncio.sleep(LOOK)
    assert times[0] > OTHERS_FIRST_SECONDS
    assert times[1] - times[0] > OTHERS_FIRST_SECONDS
    assert len(await heard(bus)) == 3 * PACK_MAX


async def test_the_excess_of_one_publisher_carries_no_word_of_another(bus: JetStreamBus) -> None:
    now = Clock().now()
    delayed = Delayed(subject=subjects.observation("quiet", TARGET), body="", sequence=1, stored_at=now)
    excess = Excess(source="chatty", delayed=(delayed,), observed_at=now)
    body = encode(excess, id="1", source="/test", time=now)
    await bus.publish(Outgoing(subjects.excess("chatty"), body, "1"))
    before = telemetry.quarantined.labels(EXCESS.name)._value.get()
    async with running(router(bus).excess.run):
        while (left := await bus.extent(EXCESS)).first <= left.last:
            await asyncio.sleep(LOOK)
    assert telemetry.quarantined.labels(EXCESS.name)._value.get() == before + 1
    assert await heard(bus) == []
