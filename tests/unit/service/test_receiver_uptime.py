"""Receivers know together since when no post was lost: who starts asks the others, who stopped taking posts begins
again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from bus import subjects
from bus.errors import Unavailable
from bus.port import Handler
from bus.testing.memory import MemoryBus
from reactor.fleet.presence import Presence, Process
from reactor.fleet.receiver_uptime import ReceiverUptime
from tests.clock import START, HandClock


def said(first: Callable[[], None], answer: bytes) -> Handler:
    """Gives the same answer always, after `first`."""

    async def handle(_: bytes) -> bytes:
        first()
        return answer

    return handle


class Fleet:
    """Processes on one bus, with one clock."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.clock.standstill.tick()
        self.bus = MemoryBus(self.clock.now)
        self._stacks: dict[str, AsyncExitStack] = {}

    async def start(self, name: str, *, roles: tuple[str, ...] = ("receiver", "router")) -> ReceiverUptime:
        """A process that is there, and takes no posts yet."""
        self._stacks[name] = stack = AsyncExitStack()
        await stack.enter_async_context(Presence(self.bus, Process(name, roles, "digest", START)).here())
        uptime = ReceiverUptime(self.bus, self.clock, name)
        if "receiver" in roles:
            await stack.enter_async_context(uptime.answering())
        return uptime

    async def receiver(self, name: str, *, at: float) -> ReceiverUptime:
        """A process that takes posts from then on."""
        self.pass_time(at)
        uptime = await self.start(name)
        await uptime.begin()
        return uptime

    async def end(self, *names: str) -> None:
        for name in names or tuple(self._stacks):
            await self._stacks.pop(name).aclose()

    async def since(self, uptime: ReceiverUptime, *, at: float) -> float | None:
        """In seconds from the start, as told at this moment."""
        self.pass_time(at)
        found = await uptime.since()
        return None if found is None else (found - START).total_seconds()

    def pass_time(self, until: float) -> None:
        """The process runs all the time."""
        while self.clock.seconds < until:
            self.clock.seconds = min(until, self.clock.seconds + 0.5)
            self.clock.standstill.tick()


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    yield fleet
    await fleet.end()


async def test_the_first_receiver_knows_of_nothing_before(fleet: Fleet) -> None:
    first = await fleet.receiver("a", at=10)
    assert [await fleet.since(first, at=at) for at in (11, 12, 100)] == [10, 10, 10]


async def test_who_starts_beside_another_goes_on_from_its_time(fleet: Fleet) -> None:
    """A rolling restart costs no recovery window."""
    await fleet.receiver("a", at=10)
    await fleet.receiver("b", at=50)
    await fleet.end("a")
    third = await fleet.receiver("c", at=90)
    await fleet.end("b")
    assert await fleet.since(third, at=95) == 10


async def test_where_all_were_away_nothing_is_known_of_that_time(fleet: Fleet) -> None:
    await fleet.receiver("a", at=10)
    await fleet.end()
    assert await fleet.since(await fleet.receiver("a", at=22), at=22) == 22


async def test_who_takes_no_posts_yet_answers_for_nothing(fleet: Fleet) -> None:
    starting, other = await fleet.start("a"), await fleet.receiver("b", at=10)
    assert await fleet.since(other, at=10) == 10
    assert await fleet.since(starting, at=20) == 10
    await fleet.end("b")
    assert [await fleet.since(starting, at=at) for at in (30, 40)] == [30, 40]


async def test_who_was_interrupted_goes_on_from_who_was_not(fleet: Fleet) -> None:
    one, two = await fleet.receiver("a", at=10), await fleet.receiver("b", at=11)
    one.interrupted()
    assert (await fleet.since(one, at=30), await fleet.since(two, at=30)) == (10, 10)


async def test_where_all_were_interrupted_their_time_begins_again(fleet: Fleet) -> None:
    one, two = await fleet.receiver("a", at=10), await fleet.receiver("b", at=11)
    for uptime in (one, two):
        uptime.interrupted()
    fleet.bus.down = True
    with pytest.raises(Unavailable):
        await fleet.since(one, at=20)
    fleet.bus.down = False
    assert (await fleet.since(one, at=30), await fleet.since(two, at=31)) == (30, 30)


@pytest.mark.parametrize(("stopped", "since"), [(4, 10), (6, 26)], ids=["short", "long"])
async def test_a_post_waits_for_a_process_that_was_stopped_for_a_short_time(
    fleet: Fleet, stopped: float, since: float
) -> None:
    one = await fleet.receiver("a", at=10)
    await fleet.since(one, at=20)
    fleet.clock.seconds += stopped
    assert await fleet.since(one, at=20 + stopped) == since


async def test_a_process_without_receiver_asks_those_that_are_there(fleet: Fleet) -> None:
    router = await fleet.start("r", roles=("router",))
    assert [await fleet.since(router, at=at) for at in (5, 6)] == [5, 6]
    one, two = await fleet.receiver("a", at=10), await fleet.receiver("b", at=20)
    assert await fleet.since(router, at=30) == 10
    one.interrupted()
    two.interrupted()
    await fleet.end("b")
    assert [await fleet.since(router, at=at) for at in (40, 50)] == [40, 40]


async def test_receivers_of_an_earlier_release_are_believed(fleet: Fleet) -> None:
    router = await fleet.start("r", roles=("router",))
    async with Presence(fleet.bus, Process("old", ("receiver",), "digest", START)).here():
        assert await fleet.since(router, at=20) is None
        assert await fleet.since(await fleet.receiver("new", at=30), at=30) == 30


async def test_who_is_interrupted_while_it_asks_asks_again(fleet: Fleet) -> None:
    one = await fleet.receiver("a", at=10)
    stop = await fleet.bus.listen(
        subjects.alive("receiver-b"), said(one.interrupted, b'{"since": "2026-01-01T00:00:00Z"}')
    )
    async with Presence(fleet.bus, Process("b", ("receiver",), "digest", START)).here():
        one.interrupted()
        await fleet.since(one, at=20)
        await stop()
        assert await fleet.since(one, at=30) == 30


async def test_receivers_that_hang_are_not_taken_for_an_earlier_release(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = await fleet.start("r", roles=("router",))
    await fleet.receiver("a", at=10)

    async def hangs(*_: object) -> None:
        return None

    monkeypatch.setattr(fleet.bus, "is_present", hangs)
    monkeypatch.setattr(fleet.bus, "request", hangs)
    assert await fleet.since(router, at=20) == 20


async def test_an_answer_that_cannot_be_read_is_none(fleet: Fleet) -> None:
    one = await fleet.receiver("a", at=10)
    async with Presence(fleet.bus, Process("odd", ("receiver",), "digest", START)).here():
        await fleet.bus.listen(subjects.alive("receiver-odd"), said(lambda: None, b'{"since": 7}'))
        one.interrupted()
        assert await fleet.since(one, at=12) == 12


async def test_begin_and_interruption_are_told(fleet: Fleet) -> None:
    one, told = await fleet.start("a"), list[str]()
    forget = one.watch(lambda: told.append("look"))
    await one.begin()
    one.interrupted()
    assert told == ["look", "look"]
    forget()
    one.interrupted()
    assert told == ["look", "look"]


async def test_what_a_connection_tells_while_it_is_up_is_no_interruption(fleet: Fleet) -> None:
    """It tells as well that a user may not publish somewhere, again and again: no post is lost by that."""
    alone = await fleet.receiver("alone", at=10)
    alone.connection(up=True)
    assert await fleet.since(alone, at=20) == 10
    alone.connection(up=False)
    assert await fleet.since(alone, at=30) == 30
