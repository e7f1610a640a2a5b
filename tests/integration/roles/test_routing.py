"""Routers on a real bus: what they hold when they stop or die, and what they do not know, delays no window."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode, encode
from bus.jetstream import JetStreamBus, provision
from bus.messages import Health, Observation, WebhookPost
from bus.port import Delivery, Outgoing
from bus.topology import FACTS, INBOX, ROUTE_WAIT, ROUTERS
from reactor.decide.watermark import STUCK_SECONDS, Watermark
from reactor.route import router as router_module
from reactor.route.publisher import FactPublisher
from reactor.route.router import PARKED_AT_ONCE, UNREAD_MAX, Router
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SourceUnknown
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.integration.roles.conftest import PARTITIONS, RULE, eventually, is_empty, queue_is, running

POSTS = 100


@dataclass
class Posts:
    """Takes posts as a keeper of alerts does: each after `seconds` and `may`, of `sources` only."""

    seconds: float = 0.0
    may: asyncio.Event | None = None
    """None: at once."""
    sources: frozenset[str] = frozenset({"am"})
    taken: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    """Posts that were being taken at the same time, at most."""

    async def take_post(self, post: WebhookPost) -> None:
        if post.source not in self.sources:
            raise SourceUnknown(post.source)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(self.seconds)
        if self.may is not None:
            await self.may.wait()
        self.at_once -= 1
        self.taken.append(post.post)

    async def sweep(self) -> None:
        raise AssertionError

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.fixture
async def bus(server: EmbeddedServer) -> AsyncIterator[JetStreamBus]:
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        await provision(bus)
        yield bus


async def post(bus: JetStreamBus, *names: str, source: str = "am") -> None:
    await _store(bus, subjects.webhook(source), source, names)


async def park(bus: JetStreamBus, *names: str) -> None:
    await _store(bus, subjects.parked("am"), "am", names)


async def _store(bus: JetStreamBus, subject: str, source: str, names: Sequence[str]) -> None:
    now = Clock().now()
    await bus.publish_all([
        Outgoing(
            subject,
            encode(
                WebhookPost(source=source, post=name, chunk=0, chunks=1, alerts=(), truncated=0, observed_at=now),
                id=name, source="/test", time=now,
            ),
            name,
        )
        for name in names
    ])  # fmt: skip


def publisher(bus: JetStreamBus, clock: Clock) -> FactPublisher:
    routing = Routing(load_rules([("shop.yaml", RULE.format(mode="DryRun", toleration=0))]).rules)
    return FactPublisher(bus, routing, PARTITIONS, clock, source="/test")


async def waited(bus: JetStreamBus, within: float = 60.0) -> float:
    """Seconds until a window that is over now may be acted on; `STUCK_SECONDS` where it waits for what does not end."""
    clock = Clock()
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading, asyncio.timeout(within):
        known, since, moment = Watermark(bus, clock, reading), clock.monotonic(), clock.now()
        while await known.up_to(moment, reading.position) is None:
            await asyncio.sleep(0.02)
        return clock.monotonic() - since


@pytest.mark.alone
async def test_a_router_that_stops_gives_all_it_holds_to_the_next_at_once(bus: JetStreamBus) -> None:
    names = [str(number) for number in range(POSTS)]
    await post(bus, *names)
    slow, quick = Posts(seconds=1.0), Posts()
    clock = Clock()
    async with running(Router(bus, publisher(bus, clock), slow, Clock()).run):
        await eventually(lambda: slow.at_once > 0)
    assert not slow.taken
    stopped = clock.monotonic()
    async with running(Router(bus, publisher(bus, clock), quick, Clock()).run):
        assert await waited(bus) < ROUTE_WAIT.total_seconds() / 2
        await eventually(lambda: len(quick.taken) == POSTS)
    assert clock.monotonic() - stopped < ROUTE_WAIT.total_seconds() / 2
    assert sorted(quick.taken) == sorted(names)


@pytest.mark.alone
async def test_a_router_that_is_killed_delays_windows_by_two_seconds(server: EmbeddedServer, bus: JetStreamBus) -> None:
    await post(bus, "held")
    async with JetStreamBus.connect(server.url, name="killed", timeout=timedelta(seconds=10)) as other:
        work = other.work(ROUTERS, batch=10)
        async with work as held:
            [_] = await held.next(ROUTE_WAIT)
            await asyncio.sleep(ROUTE_WAIT.total_seconds() * 1.5)  # it works on it: no other router gets it
            assert (await bus.extent(INBOX)).first == 1
            await other.connection.client.close()  # without a word about what it holds, as when it is killed
            async with running(Router(bus, publisher(bus, Clock()), Posts(), Clock()).run):
                assert await waited(bus) < ROUTE_WAIT.total_seconds() + 0.5


async def test_messages_that_two_routers_route_become_facts_once(server: EmbeddedServer, bus: JetStreamBus) -> None:
    """A cluster without a leader hears no extension: all that a router holds is given to another as well."""
    clock = Clock()
    count = 50
    for number in range(count):
        seen = Observation(target="service/east/shop/checkout", status=Health.UNHEALTHY, observed_at=clock.now())
        body = encode(seen, id=f"{number}", source="/test", time=clock.now())
        await bus.publish(Outgoing(subjects.observation("health", "a"), body, f"{number}"))
    async with JetStreamBus.connect(server.url, name="unheard", timeout=timedelta(seconds=10)) as other:
        unheard = Router(other, publisher(other, clock), Posts(), Clock())
        async with other.work(ROUTERS, batch=count) as work:
            held: list[Delivery] = []
            while len(held) < count:
                held += await work.next(ROUTE_WAIT)
            work._extending.cancel()  # type: ignore[attr-defined] # its extensions are lost on the way
            async with running(Router(bus, publisher(bus, clock), Posts(), Clock()).run):
                assert await waited(bus) < STUCK_SECONDS / 2
            for delivery in held:
                await unheard._one(work, INBOX, delivery)
    facts = []
    async with bus.read(FACTS, f"{subjects.ROOT}.facts.>", after=0) as reading:
        while got := await reading.next(ROUTE_WAIT / 4):
            facts += [decode(one.body).id for one in got]
    assert len(facts) == len(set(facts)) == count


@pytest.mark.alone
async def test_a_post_for_a_source_that_is_unknown_here_delays_no_window_and_is_not_lost(bus: JetStreamBus) -> None:
    clock = Clock()
    old, new = Posts(), Posts(sources=frozenset({"am", "renamed"}))
    router = Router(bus, publisher(bus, clock), old, Clock())
    async with running(router.run), running(router.run_parked):
        await post(bus, "for newer rules", source="renamed")
        await queue_is(bus, ROUTERS, is_empty)  # it is parked, and no router here ever takes it
        assert await waited(bus) < 1.0
        assert not old.taken
    router = Router(bus, publisher(bus, clock), new, Clock())
    async with running(router.run), running(router.run_parked):
        await eventually(lambda: new.taken == ["for newer rules"])


@pytest.mark.alone
async def test_posts_that_wait_are_routed_one_by_one_and_no_window_waits_for_them(bus: JetStreamBus) -> None:
    posts = Posts(may=asyncio.Event())
    router = Router(bus, publisher(bus, Clock()), posts, Clock())
    names = [f"piece {number}" for number in range(8)]
    await park(bus, *names)
    async with running(router.run), running(router.run_parked):
        await eventually(lambda: posts.at_once > 0)
        assert await waited(bus) < 1.0
        assert not posts.taken
        assert posts.may is not None
        posts.may.set()
        await eventually(lambda: sorted(posts.taken) == names)
    assert posts.most == PARKED_AT_ONCE


async def test_a_queue_of_an_older_version_is_changed_at_the_start(server: EmbeddedServer, tmp_path: Path) -> None:
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        await provision(bus)
        info = f"CONSUMER.INFO.{ROUTERS.stream}.{ROUTERS.name}"
        config = (await bus.connection.api(info, {}))["config"]
        create = f"CONSUMER.DURABLE.CREATE.{ROUTERS.stream}.{ROUTERS.name}"
        old = {**config, "ack_wait": 10 * 10**9}
        await bus.connection.api(create, {"stream_name": ROUTERS.stream, "config": old})
        await provision(bus)
        assert (await bus.connection.api(info, {}))["config"]["ack_wait"] == 2 * 10**9


async def test_a_post_is_in_hand_until_our_deciders_have_read_most_of_what_it_became(bus: JetStreamBus) -> None:
    """Its source stores no more meanwhile: what others say would wait behind its facts. Others' posts are routed."""
    posts, hands, unread = Posts(sources=frozenset({"am", "other"})), Counter[str](), [UNREAD_MAX + 1]
    one = Router(bus, publisher(bus, Clock()), posts, Clock(), in_hands=hands, unread=lambda: unread[0])
    async with running(one.run):
        await post(bus, "first")
        await eventually(lambda: posts.taken == ["first"])
        await queue_is(bus, ROUTERS, is_empty)
        await post(bus, "second", source="other")
        await eventually(lambda: posts.taken == ["first", "second"])
        assert hands[subjects.webhook("am")] == 1
        unread[0] = UNREAD_MAX
        await eventually(lambda: hands.total() == 0)


async def test_what_waits_parked_is_taken_up_when_our_deciders_have_room(bus: JetStreamBus) -> None:
    posts, unread = Posts(), [UNREAD_MAX + 1]
    looks: list[int] = []

    def counted() -> int:
        looks.append(unread[0])
        return unread[0]

    one = Router(bus, publisher(bus, Clock()), posts, Clock(), unread=counted)
    await park(bus, "first")
    async with running(one.run_parked):
        await eventually(lambda: len(looks) >= 5)
        assert posts.taken == []
        unread[0] = 0
        await eventually(lambda: posts.taken == ["first"])


async def test_deciders_that_read_nothing_hold_up_no_source_for_long(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_module, "UNREAD_SECONDS", 0.1)
    posts, hands = Posts(), Counter[str]()
    one = Router(bus, publisher(bus, Clock()), posts, Clock(), in_hands=hands, unread=lambda: UNREAD_MAX + 1)
    async with running(one.run), running(one.run_parked):
        await post(bus, "first")
        await park(bus, "second")
        await eventually(lambda: sorted(posts.taken) == ["first", "second"] and hands.total() == 0)
