"""What routers make of what others say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from bus import subjects
from bus.envelope import decode, encode
from bus.memory import MemoryBus
from bus.messages import Health, Observation, WebhookPost
from bus.port import Outgoing
from bus.subjects import ROOT
from bus.topology import FACTS
from reactor.clock import Clock
from reactor.roles.publisher import Publisher
from reactor.roles.router import Router
from rules.engine.routing import Routing
from tests.unit.rules.builders import notification, rule_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG = timedelta(seconds=5)


class NoAlerts:
    async def take_post(self, post: WebhookPost) -> None:
        raise AssertionError(post)

    async def sweep(self) -> None:
        raise AssertionError


async def routed(*moments: datetime) -> list[datetime]:
    """Say something that was seen at these moments by the speaker's clock, and give how the facts are dated."""
    bus = MemoryBus(lambda: NOW)
    for number, at in enumerate(moments):
        said = Observation(target="service/east/shop/a", status=Health.HEALTHY, observed_at=at)
        body = encode(said, id=f"{number}", source="/test", time=at)
        await bus.publish(Outgoing(subjects.observation("test", "a"), body, f"{number}"))
    publisher = Publisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    task = asyncio.create_task(Router(bus, publisher, NoAlerts()).run())
    facts: list[datetime] = []
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        while len(facts) < len(moments):
            facts += [decode(one.body).data.observed_at for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return facts


async def test_what_is_dated_in_the_future_is_dated_when_it_was_said() -> None:
    assert await routed(NOW + timedelta(hours=1), NOW - timedelta(hours=1)) == [NOW, NOW - timedelta(hours=1)]


async def test_a_clock_that_is_a_little_ahead_is_believed() -> None:
    assert await routed(NOW + timedelta(seconds=1)) == [NOW + timedelta(seconds=1)]
