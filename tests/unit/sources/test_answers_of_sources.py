"""Proof by a source's observation: from when on the status has lasted, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bus.messages import Health, Observation, RefreshRequest
from bus.subjects import refresh
from bus.testing.memory import MemoryBus
from reactor.clients.changes import ReadInterval
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from reactor.sources import republisher as standing_
from reactor.sources.probes.probing import TryFailed, probe, resolution
from reactor.sources.publisher import HealthPublisher
from reactor.sources.refresh import RefreshRequests, no_requests
from reactor.sources.source_context import SourceContext
from reactor.sources.standing_fact import LONG_AGO
from rules.rulefile.sources import TcpProbe
from tests.clock import HandClock, on_virtual_time, virtual_clock

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
TARGET = "service/east/shop/db"


def source(**more: Any) -> TcpProbe:
    return TcpProbe(name="db", kind="TcpProbe", host="db", port=1, target=TARGET, **more)


class Bus:
    def __init__(self) -> None:
        self.taken: list[Observation] = []
        self.down = self.frozen = False

    async def tell(self, observation: Observation) -> None:
        if self.frozen:
            await asyncio.sleep(2)
        if self.down or self.frozen:
            raise Retryable("the bus is away")
        self.taken.append(observation)

    @property
    def last(self) -> Observation:
        return self.taken[-1]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def publisher(clock: HandClock, bus: Bus) -> HealthPublisher:
    return HealthPublisher(source(refresh_seconds=30), bus.tell, clock)


def at(seconds: float) -> datetime:
    return HandClock(seconds).now()


async def says(publisher: HealthPublisher, clock: HandClock, seconds: float, status: Health, **more: Any) -> None:
    clock.seconds = seconds
    await publisher.say(TARGET, status, **more)


async def test_a_word_says_who_can_be_asked_and_since_when_it_has_been_so(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    for seconds in (0, 10, 20, 31):
        await says(publisher, clock, seconds, U, resolution_seconds=12, version="v1")
    assert [(one.since, one.observed_at) for one in bus.taken] == [(at(0), at(0)), (at(0), at(31))]
    assert (bus.last.source, bus.last.version, bus.last.resolution_seconds) == ("db", "v1", 12)
    assert bus.last.valid_seconds is None


async def test_another_status_begins_again(publisher: HealthPublisher, clock: HandClock, bus: Bus) -> None:
    for seconds, status in ((0, U), (5, H), (9, U)):
        await says(publisher, clock, seconds, status, resolution_seconds=12)
    assert bus.last.since == at(9)


async def test_time_in_which_no_look_was_taken_begins_again_and_is_said_at_once(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    for seconds in (0, 10, 23):
        await says(publisher, clock, seconds, U, resolution_seconds=12)
    assert [one.since for one in bus.taken] == [at(0), at(23)]


async def test_a_change_that_was_not_watched_begins_again(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, U, unbroken=True)
    await says(publisher, clock, 1000, U, unbroken=True)
    assert bus.last.since == at(0), "a watch that went on has seen that nothing changed"
    await says(publisher, clock, 1001, U, unbroken=False)
    assert bus.last.since == at(1001)


async def test_what_a_look_found_was_so_by_its_end_and_what_it_confirmed_from_its_begin_on(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 2, U, look=ReadInterval(at(0), at(2)), resolution_seconds=12)
    assert (bus.last.since, bus.last.observed_at) == (at(2), at(2))
    await says(publisher, clock, 42, U, look=ReadInterval(at(40), at(42)), resolution_seconds=60)
    assert (bus.last.since, bus.last.observed_at) == (at(2), at(40))


@asynccontextmanager
async def kept(
    publisher: HealthPublisher, seen: Callable[[str], datetime | None] = lambda _: LONG_AGO
) -> AsyncIterator[None]:
    task = asyncio.create_task(publisher.keep(seen, lambda _: None, no_requests))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_after_an_outage_of_the_bus_the_last_word_goes_out_at_once_with_its_true_dates(bus: Bus) -> None:
    on_virtual_time(_outage(bus))


async def _outage(bus: Bus) -> None:
    clock = virtual_clock()
    publisher = HealthPublisher(source(refresh_seconds=600), bus.tell, clock)
    async with kept(publisher):
        await publisher.say(TARGET, U)
        bus.down = True
        await publisher.say(TARGET, H)
        await publisher.say(TARGET, U)
        since = clock.now()
        await publisher.say(TARGET, U, unbroken=True)
        seen = clock.now()
        await asyncio.sleep(0.5)
        bus.down, back = False, clock.monotonic()
        while len(bus.taken) < 2:
            await asyncio.sleep(0.01)
        assert clock.monotonic() - back < 2 * standing_.RETRY_SECONDS
    assert bus.last.status is U
    assert bus.last.since is not None
    assert bus.last.since <= since <= bus.last.observed_at <= seen


def test_looks_do_not_wait_for_a_bus_that_hangs(bus: Bus) -> None:
    on_virtual_time(_looks_at_a_bus_that_hangs(bus))


async def _looks_at_a_bus_that_hangs(bus: Bus) -> None:
    clock = virtual_clock()
    publisher = HealthPublisher(source(), bus.tell, clock)
    async with kept(publisher):
        bus.frozen, began = True, clock.monotonic()
        for status in (H, U, H, U, H, U):
            await publisher.say(TARGET, status)
        assert clock.monotonic() - began <= standing_.PATIENCE_SECONDS / 10  # six looks


async def test_what_was_asked_for_and_has_been_seen_since_is_said_again(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, H)
    clock.seconds = 10
    assert not await publisher._standing.ask([TARGET, "service/of/another"], at(5), lambda _: at(7))
    assert [one.observed_at for one in bus.taken] == [at(0), at(7)]
    assert bus.last.since == at(0)


async def test_what_two_ask_for_at_the_same_time_is_said_once_and_again_for_who_still_lacks_it(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, H)
    clock.seconds = 10
    for _ in range(2):
        assert not await publisher._standing.ask([TARGET], at(5), lambda _: at(7))
    assert [one.observed_at for one in bus.taken] == [at(0), at(7)]
    assert not await publisher._standing.ask([TARGET], at(8), lambda _: at(9))
    assert bus.last.observed_at == at(9), "a later look is another word"
    clock.seconds = 11
    assert not await publisher._standing.ask([TARGET], at(8), lambda _: at(9))
    assert len(bus.taken) == 4


async def test_what_hangs_is_said_when_a_look_ends_without_an_answer_though_it_began_before_the_question(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, U)
    clock.seconds = 9
    assert await publisher._standing.ask([TARGET], at(9), lambda _: LONG_AGO)
    await says(publisher, clock, 10, U, look=ReadInterval(at(5), at(10)), unbroken=True, answered=False)
    assert (bus.last.observed_at, bus.last.unanswered_until) == (at(5), at(10))


async def test_what_was_asked_for_and_not_seen_yet_is_said_by_the_next_look(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, H)
    clock.seconds = 10
    assert await publisher._standing.ask([TARGET], at(9), lambda _: at(8))
    await says(publisher, clock, 10, H, look=ReadInterval(at(8), at(10)), unbroken=True)
    assert len(bus.taken) == 1, "a look that began before does not prove it"
    await says(publisher, clock, 11, H, look=ReadInterval(at(10), at(11)), unbroken=True)
    assert bus.last.observed_at == at(10)


async def test_what_cannot_be_believed_is_not_said_though_it_is_asked_for(
    publisher: HealthPublisher, clock: HandClock, bus: Bus
) -> None:
    await says(publisher, clock, 0, H)
    assert await publisher._standing.ask([TARGET], at(0), lambda _: None)
    assert len(bus.taken) == 1


class Shop:
    """A target, and a probe of it whose next reading is an hour away."""

    def __init__(self, **more: Any) -> None:
        self.clock = Clock()
        self.bus, self.queue = MemoryBus(self.clock.now), Bus()
        self.tries, self.well = 0, True
        self.answers = asyncio.Event()
        """Cleared: a try waits until it is set."""
        self.answers.set()
        self.interrupts: Callable[[], Awaitable[str]] | None = None
        self.source = source(every_seconds=3600, timeout_seconds=5, **more)
        self.world = SourceContext(
            self.clock, self._tell, None, {}, None, requests=RefreshRequests(self.bus, self.clock).hear  # type: ignore[arg-type]
        )  # fmt: skip

    async def _tell(self, fact: Any) -> None:
        await self.queue.tell(fact)

    async def attempt(self) -> str:
        if self.interrupts is not None:
            interrupted, self.interrupts = self.interrupts, None
            return await interrupted()
        self.tries += 1
        await self.answers.wait()
        if not self.well:
            raise TryFailed("HTTP 503")
        return "HTTP 200"

    async def asked(self, *, ahead: float = 0) -> None:
        moment = self.clock.now() + timedelta(seconds=ahead)
        await self.bus.notify(
            refresh("db"), RefreshRequest(targets=(TARGET,), not_before=moment).model_dump_json().encode()
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.005)

    @asynccontextmanager
    async def probed(self) -> AsyncIterator[asyncio.Task[None]]:
        self.world.scheduler.start()
        task = asyncio.create_task(probe(self.source, self.world, self.attempt))
        try:
            await self.until(lambda: bool(self.queue.taken))
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.world.scheduler.shutdown(wait=False)


@pytest.fixture(autouse=True)
def no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.sources.ticker.SPREAD_SECONDS_MAX", 0.0)


async def test_a_probe_that_is_asked_tries_once_and_confirms() -> None:
    shop = Shop()
    async with shop.probed():
        first, asked = shop.queue.last, shop.clock.now()
        await shop.asked()
        await shop.until(lambda: len(shop.queue.taken) == 2)
    assert shop.queue.last.observed_at >= asked
    assert (shop.queue.last.status, shop.queue.last.since, shop.tries) == (H, first.since, 2)


async def test_requests_that_come_together_are_answered_by_one_try() -> None:
    shop = Shop()
    async with shop.probed():
        shop.answers.clear()
        await asyncio.gather(*(shop.asked() for _ in range(20)))
        await shop.until(lambda: shop.tries == 2)
        shop.answers.set()
        await shop.until(lambda: len(shop.queue.taken) == 2)
        await shop.asked()  # comes after what was left of the twenty
        await shop.until(lambda: len(shop.queue.taken) >= 3)
    assert shop.tries <= 4  # the first try, one that began before the last of the twenty came, theirs, and the last one


async def test_an_extra_try_that_disagrees_turns_nothing_however_often_it_is_asked_for() -> None:
    shop = Shop(failure_threshold=2)
    async with shop.probed():
        shop.well = False
        for number in range(2, 8):
            await shop.asked()
            await shop.until(lambda number=number: shop.tries >= number)  # type: ignore[misc]
        assert len(shop.queue.taken) == 1
        shop.well = True
        await shop.asked()
        await shop.until(lambda: len(shop.queue.taken) == 2)
    assert shop.queue.last.status is H


async def test_a_failure_below_the_threshold_confirms_nothing() -> None:
    shop = Shop(failure_threshold=3)
    shop.source = shop.source.model_copy(update={"every_seconds": 0.05})
    async with shop.probed():
        shop.well = False
        tries = shop.tries
        await shop.until(lambda: shop.tries > tries)
        moment = shop.clock.now()
        await shop.asked()
        await shop.until(lambda: shop.queue.last.status is U)
    assert not [one for one in shop.queue.taken if one.status is H and one.observed_at >= moment]


class Jumping(Clock):
    """A clock that jumps ahead, as after a standstill."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


async def test_a_try_that_a_standstill_interrupted_is_taken_again_and_says_nothing() -> None:
    shop, clock = Shop(failure_threshold=1), Jumping()
    shop.clock, shop.world = clock, replace(shop.world, clock=clock)
    clock.standstill.tick()

    async def interrupted() -> str:
        clock.ahead = timedelta(hours=3)
        raise TryFailed("no answer")

    async with shop.probed():
        shop.interrupts = interrupted
        await shop.asked()
        await shop.until(
            lambda: shop.queue.last.since == shop.queue.last.observed_at > clock.now() - timedelta(hours=1)
        )
    assert {one.status for one in shop.queue.taken} == {H}


async def test_a_moment_that_is_a_little_ahead_is_waited_for() -> None:
    shop = Shop()
    async with shop.probed():
        moment = shop.clock.now() + timedelta(seconds=0.3)
        await shop.asked(ahead=0.3)
        assert shop.queue.last.observed_at >= moment or await _later(shop, moment)


async def _later(shop: Shop, moment: datetime) -> bool:
    await shop.until(lambda: shop.queue.last.observed_at >= moment)
    return True


async def test_a_reading_in_hand_of_a_source_that_was_ended_is_never_heard() -> None:
    shop = Shop(failure_threshold=1)
    async with shop.probed() as task:
        shop.answers.clear()
        shop.well = False
        job = shop.world.scheduler.get_jobs()[0]
        job.modify(next_run_time=datetime.now(job.next_run_time.tzinfo))  # noqa: TID251 - the scheduler's own clock
        await shop.until(lambda: shop.tries == 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        shop.answers.set()
        for _ in range(100):  # whatever of it went on would be heard by now
            await asyncio.sleep(0)
    assert [one.status for one in shop.queue.taken] == [H]


def test_a_probe_does_not_see_what_is_shorter_than_the_other_threshold() -> None:
    one = source(every_seconds=10, timeout_seconds=2, failure_threshold=3, success_threshold=1)
    assert (resolution(one, H), resolution(one, U)) == (32, 12)
