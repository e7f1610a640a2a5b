"""What routers make of what others say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from bus import subjects
from bus.envelope import decode, encode
from bus.memory import MemoryBus
from bus.messages import Health, IsolateZone, Message, Observation, Pause, WebhookPost
from bus.port import Outgoing
from bus.subjects import ROOT
from bus.topology import DECISIONS, FACTS, INBOX
from reactor import telemetry
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
        await bus.publish(Outgoing(subjects.observation("health", "a"), body, f"{number}"))
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


async def test_what_a_source_says_beside_its_own_signal_is_put_aside_and_counted() -> None:
    """Commands, posts of Alertmanager and words of other sources, all on the subject of one source."""
    bus = MemoryBus(lambda: NOW)
    target = "service/east/shop/a"
    forged: list[Message] = [
        IsolateZone(rule="zones", zone="z-a", by="alice (CTO)", reason="r", force=True, observed_at=NOW),
        Pause(rule="*", by="alice", reason="r", observed_at=NOW),
        WebhookPost(source="am", post="0" * 64, chunk=0, chunks=1, alerts=(), truncated=0, observed_at=NOW),
        Observation(target=target, status=Health.UNHEALTHY, signal="readiness", observed_at=NOW),
    ]
    own = Observation(target=target, status=Health.UNHEALTHY, signal="backup-check", observed_at=NOW)
    for number, said in enumerate([*forged, own]):
        body = encode(said, id=f"{number}", source="/reactor/observer", time=NOW)
        await bus.publish(Outgoing(subjects.observation("backup-check", target), body, f"{number}"))
    aside = telemetry.quarantined.labels(INBOX.name)._value
    before = aside.get()
    publisher = Publisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    task = asyncio.create_task(Router(bus, publisher, NoAlerts()).run())
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        heard = [decode(one.body).data for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert heard == [own]
    assert aside.get() == before + len(forged)
    assert (await bus.extent(DECISIONS)).last == 0


async def test_no_publisher_takes_the_id_of_a_fact_of_another_source() -> None:
    bus = MemoryBus(lambda: NOW)
    publisher = Publisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    target = "service/east/shop/a"
    own = Observation(target=target, status=Health.UNHEALTHY, signal="readiness", observed_at=NOW)
    [fact] = publisher.messages(own)
    other = Observation(target=target, status=Health.HEALTHY, signal="backup-check", observed_at=NOW)
    source, _, id_ = fact.id.partition("/")[2].partition("/")
    body = encode(other, id=id_, source=source, time=NOW)
    await bus.publish(Outgoing(subjects.observation("backup-check", target), body, "1"))
    task = asyncio.create_task(Router(bus, publisher, NoAlerts()).run())
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        await reading.next(LONG)
        await publisher.publish(own)
        heard = [decode(one.body).data for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert heard == [own]
