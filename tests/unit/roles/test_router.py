"""Facts that routers make of messages."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from bus import subjects
from bus.envelope import decode, encode
from bus.messages import Health, IsolateZone, Message, Observation, Pause, WebhookPost
from bus.port import Outgoing
from bus.subjects import ROOT
from bus.testing.memory import MemoryBus
from bus.topology import DECISIONS, FACTS, INBOX
from reactor.route.publisher import FactPublisher
from reactor.route.router import Router
from reactor.route.spoken import Spoken
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing
from tests.clock import HandClock
from tests.unit.rules.builders import notification, rule_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG = timedelta(seconds=5)


class NoAlerts:
    async def take_post(self, post: WebhookPost) -> None:
        raise AssertionError(post)

    async def sweep(self) -> None:
        raise AssertionError

    async def wait(self, seconds: float) -> None:
        raise AssertionError(seconds)


async def routed(*moments: datetime) -> list[datetime]:
    """Say something that was seen at these moments by the speaker's clock, and give how the facts are dated."""
    bus = MemoryBus(lambda: NOW)
    for number, at in enumerate(moments):
        said = Observation(target="service/east/shop/a", status=Health.HEALTHY, observed_at=at)
        body = encode(said, id=f"{number}", source="/test", time=at)
        await bus.publish(Outgoing(subjects.observation("health", "a"), body, f"{number}"))
    publisher = FactPublisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    task = asyncio.create_task(Router(bus, publisher, NoAlerts(), Clock()).run())
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


def test_what_rules_of_all_partitions_hear_goes_to_each_partition_once() -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop"}
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    rules = [
        {"name": f"r{n}", "kind": "WorkloadFailover", "mode": "Enforce", "placement": placement,
         "resourceSelectors": [selector | {"labelSelector": {"matchLabels": {"app": f"a{n}"}}}]} for n in range(200)
    ]  # fmt: skip
    routing = Routing.of(rule_set(*rules))
    publisher = FactPublisher(MemoryBus(lambda: NOW), routing, 64, Clock(), source="/test")
    said = Observation(target="workload/m1/shop/Deployment/a7", status=Health.HEALTHY, observed_at=NOW)
    homes = {subjects.partition_of(*home, 64) for home in routing.homes(said)}
    assert len(homes) > 50
    assert [int(one.subject.split(".")[2]) for one in publisher.messages(said)] == sorted(homes)


async def test_what_a_source_says_beside_its_own_signal_is_quarantined_and_counted() -> None:
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
    background = telemetry.quarantined.labels(INBOX.name)._value
    before = background.get()
    publisher = FactPublisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    task = asyncio.create_task(Router(bus, publisher, NoAlerts(), Clock()).run())
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        heard = [decode(one.body).data for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert heard == [own]
    assert background.get() == before + len(forged)
    assert (await bus.extent(DECISIONS)).last == 0


async def test_what_is_said_is_passed_on_as_it_came() -> None:
    """With its extensions, too. With another date it is another message, and a long one keeps only what is read."""
    bus = MemoryBus(lambda: NOW)
    bodies = []
    for number, (at, theirs) in enumerate([(NOW, b"kept"), (NOW + timedelta(hours=1), b"kept"), (NOW, b"x" * 100_000)]):
        said = Observation(target=f"service/east/shop/{number}", status=Health.HEALTHY, observed_at=at)
        body = encode(said, id=f"{number}", source="/elsewhere", time=at)[:-1] + b', "theirs": "' + theirs + b'"}'
        bodies.append(body)
        await bus.publish(Outgoing(subjects.observation("health", said.target), body, f"{number}"))
    publisher = FactPublisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    task = asyncio.create_task(Router(bus, publisher, NoAlerts(), Clock()).run())
    facts: list[bytes] = []
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        while len(facts) < 3:
            facts += [one.body for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    facts.sort(key=lambda body: decode(body).data.target)
    assert facts[0] == bodies[0]
    assert decode(facts[1]).source == decode(facts[2]).source == "/test"
    assert len(facts[2]) < 1000


async def test_no_publisher_takes_the_id_of_a_fact_of_another_source() -> None:
    bus = MemoryBus(lambda: NOW)
    publisher = FactPublisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    target = "service/east/shop/a"
    own = Observation(target=target, status=Health.UNHEALTHY, signal="readiness", observed_at=NOW)
    [fact] = publisher.messages(own)
    other = Observation(target=target, status=Health.HEALTHY, signal="backup-check", observed_at=NOW)
    source, _, id_ = fact.id.partition("/")[2].partition("/")
    body = encode(other, id=id_, source=source, time=NOW)
    await bus.publish(Outgoing(subjects.observation("backup-check", target), body, "1"))
    task = asyncio.create_task(Router(bus, publisher, NoAlerts(), Clock()).run())
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        await reading.next(LONG)
        await publisher.publish(own)
        heard = [decode(one.body).data for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert heard == [own]


async def test_a_source_on_the_bus_observes_no_more_targets_than_its_limit() -> None:
    bus, clock = MemoryBus(lambda: NOW), HandClock()
    for number in range(50):
        said = Observation(target=f"service/east/shop/{number}", status=Health.UNHEALTHY, observed_at=NOW)
        body = encode(said, id=f"{number}", source="/test", time=NOW)
        await bus.publish(Outgoing(subjects.observation("health", said.target), body, f"{number}"))
        own = said.model_copy(update={"signal": "other"})
        body = encode(own, id=f"{number}", source="/test", time=NOW)
        await bus.publish(Outgoing(subjects.observation("other", own.target), body, f"o{number}"))
    refused = telemetry.targets_refused.labels("health")._value
    before = refused.get()
    publisher = FactPublisher(bus, Routing.of(rule_set(notification())), 4, Clock(), source="/test")
    router = Router(bus, publisher, NoAlerts(), clock, targets_max={"health": 10})
    task = asyncio.create_task(router.run())
    heard: list[Observation] = []
    async with bus.read(FACTS, f"{ROOT}.facts.>", after=0) as reading:
        while len(heard) < 60:
            heard += [decode(one.body).data for one in await reading.next(LONG)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [one.signal for one in heard].count("health") == 10
    assert [one.signal for one in heard].count("other") == 50  # another source has its own limit
    assert refused.get() == before + 40


def test_targets_that_were_not_heard_for_an_hour_make_room_for_others() -> None:
    clock = HandClock()
    spoken = Spoken({"health": 2}, clock)
    subject = subjects.observation("health", "x")
    assert [spoken.admits(subject, target) for target in ("a", "b", "c")] == [True, True, False]
    clock.seconds = 1800
    assert spoken.admits(subject, "b")
    clock.seconds = 3700
    assert [spoken.admits(subject, target) for target in ("c", "d", "b")] == [True, False, True]


def test_a_source_that_no_rule_file_names_may_observe_as_many_targets_as_the_settings_say() -> None:
    """60,000 targets, some 15 kB each, are more than the memory that deploy/ gives a reactor."""
    subject = subjects.observation("stranger", "x")
    assert sum(Spoken({}, HandClock()).admits(subject, "x") for _ in range(2)) == 2
    for most, spoken in ((10_000, Spoken({}, HandClock())), (3, Spoken({}, HandClock(), others_max=3))):
        assert sum(spoken.admits(subject, f"{number}") for number in range(60_000)) == most


def test_sources_that_no_rule_file_names_share_a_bounded_memory() -> None:
    spoken = Spoken({}, HandClock())
    for number in range(2000):
        spoken.admits(subjects.observation(f"s{number}", "x"), "x")
    assert len(spoken._limits) <= 1001
