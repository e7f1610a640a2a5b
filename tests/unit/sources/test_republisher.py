"""Last words."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from bus.messages import Health, Observation, Route
from reactor.clients.changes import ReadInterval
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from reactor.sources.republisher import PATIENCE_SECONDS, RETRY_SECONDS, Republisher, gather
from reactor.sources.standing_fact import LONG_AGO
from tests.clock import HandClock, on_virtual_time, virtual_clock

GONE = Route(
    cluster="east", kind="TrafficSplit", namespace="shop", name="a", exists=False,
    observed_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


class Bus:
    def __init__(self) -> None:
        self.taken: list[Route] = []
        self.down = False

    async def tell(self, route: Route) -> None:
        if self.down:
            raise Retryable("away")
        self.taken.append(route)


async def test_a_last_word_is_told_and_forgotten() -> None:
    bus = Bus()
    standing = Republisher(bus.tell, HandClock(), period_seconds=30)
    await standing.say_once("a", GONE)
    await standing._refresh(lambda _: LONG_AGO)
    assert len(bus.taken) == 1
    assert not standing.keys


async def test_a_last_word_that_the_bus_did_not_take_stays_owed() -> None:
    bus = Bus()
    bus.down = True
    standing = Republisher(bus.tell, HandClock(), period_seconds=30)
    await standing.say_once("a", GONE)
    assert standing.keys == {"a"}
    bus.down = False
    await standing._refresh(lambda _: LONG_AGO)
    assert (len(bus.taken), standing.keys) == (1, frozenset())


async def test_a_new_word_takes_the_place_of_a_last_one() -> None:
    bus = Bus()
    bus.down = True
    standing = Republisher(bus.tell, HandClock(), period_seconds=30)
    await standing.say_once("a", GONE)
    bus.down = False
    await standing.say("a", GONE.model_copy(update={"exists": True}), changed=True)
    assert [route.exists for route in bus.taken] == [True]
    assert standing.keys == {"a"}


async def test_what_is_said_again_is_dated_when_it_was_last_known_to_be_so() -> None:
    bus, clock = Bus(), HandClock()
    standing = Republisher(bus.tell, clock, period_seconds=30)
    await standing.say("a", GONE, changed=True)
    seen = clock.now()
    clock.seconds += 40
    await standing._refresh(lambda _: LONG_AGO)
    clock.seconds += 40
    await standing._refresh(lambda _: clock.now() - timedelta(seconds=5))
    assert [route.observed_at for route in bus.taken] == [seen, seen, clock.now() - timedelta(seconds=5)]


async def test_what_the_bus_takes_late_is_dated_when_it_was_seen() -> None:
    bus, clock = Bus(), HandClock()
    bus.down = True
    standing = Republisher(bus.tell, clock, period_seconds=30)
    await standing.say("a", GONE, changed=True)
    seen = clock.now()
    clock.seconds += 10
    bus.down = False
    await standing._refresh(lambda _: LONG_AGO)
    assert [route.observed_at for route in bus.taken] == [seen]


async def test_a_source_that_ends_before_it_begins_to_speak_leaves_nothing_behind() -> None:
    bus = Bus()
    standing = Republisher(bus.tell, HandClock(), period_seconds=30)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        speaking = asyncio.create_task(gather(standing.say(key, GONE, changed=True) for key in "abc"))
        await asyncio.sleep(0)  # the sayings are made, and none has begun
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await speaking
        gc.collect()
    assert (bus.taken, warned) == ([], [])


async def test_when_the_bus_has_lost_facts_all_observations_are_told_again_at_once() -> None:
    bus, clock, wakers = Bus(), Clock(), set[Callable[[], None]]()

    def watch(wake: Callable[[], None]) -> Callable[[], None]:
        wakers.add(wake)
        return lambda: wakers.discard(wake)

    standing = Republisher(bus.tell, clock, period_seconds=3600, on_facts_lost=watch)
    for key in "abc":
        await standing.say(key, GONE, changed=True)
    before = clock.now()
    task = asyncio.create_task(standing.keep(lambda: LONG_AGO))
    try:
        async with asyncio.timeout(60):
            while not wakers:
                await asyncio.sleep(0)
            for wake in wakers:
                wake()
            while len(bus.taken) < 6:
                await asyncio.sleep(0)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert all(one.observed_at < before for one in bus.taken), "dated when it was seen"
    assert not wakers


def test_what_is_said_while_the_bus_takes_its_time_is_told_as_soon_as_it_has_taken_that() -> None:
    """Not with the next repeat, which may be seconds away."""
    taken: list[tuple[str, float]] = []
    slow = {"slow": 1.0, "slower": 1.3}

    async def tell(route: Route) -> None:
        await asyncio.sleep(slow.get(route.name, 0))
        taken.append((route.name, asyncio.get_running_loop().time()))

    async def said() -> None:
        standing = Republisher(tell, virtual_clock(), period_seconds=30)
        keeping = asyncio.create_task(standing.keep(lambda: LONG_AGO))
        await asyncio.sleep(0)
        for names in (("slow", "slower"), ("next",)):
            await gather(standing.say(name, GONE.model_copy(update={"name": name}), changed=True) for name in names)
            await asyncio.sleep(PATIENCE_SECONDS)
        await asyncio.sleep(10)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    on_virtual_time(said())
    at = dict(taken)
    assert len(taken) == len(at) == 3
    assert at["slow"] < at["next"] <= at["slow"] + RETRY_SECONDS


def test_each_who_asks_while_an_answer_is_told_gets_the_look_that_was_asked_for() -> None:
    """Many groups share a secondary and fail one after the other: each asks for a look from after its own failure."""
    taken: list[datetime] = []

    async def tell(route: Route) -> None:
        await asyncio.sleep(0.01)
        taken.append(route.observed_at)

    async def asked() -> list[datetime]:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        await standing.say("shared", GONE, changed=True)
        moments, asking = [], []
        for _ in range(8):
            await asyncio.sleep(0.003)
            moments.append(clock.now())
            asking.append(asyncio.create_task(standing.ask(["shared"], moments[-1], lambda _: clock.now())))
        await asyncio.gather(*asking)
        await asyncio.sleep(0.1)
        return moments

    moments = on_virtual_time(asked())
    assert taken[-1] >= moments[-1], "the last answer is from before the last question"


def test_what_is_otherwise_now_is_not_dated_by_what_was_known_of_how_it_was() -> None:
    told: list[tuple[bool, datetime]] = []

    async def tell(route: Route) -> None:
        await asyncio.sleep(0.01)
        told.append((route.exists, route.observed_at))

    async def changed() -> datetime:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        await standing.say("a", GONE, changed=True)
        answering = asyncio.create_task(standing.ask(["a"], clock.now(), lambda _: clock.now() + timedelta(seconds=9)))
        await asyncio.sleep(0.005)
        there = GONE.model_copy(update={"exists": True})
        look = ReadInterval(clock.now(), clock.now())
        await asyncio.gather(answering, standing.say("a", there, changed=True, look=look))
        await asyncio.sleep(0.1)
        return look.ended

    seen = on_virtual_time(changed())
    assert told[-1] == (True, seen)


def test_who_asked_first_is_answered_while_others_keep_asking() -> None:
    """Many groups share a secondary and fail one after the other, and a look takes longer than the time between two."""
    taken: list[datetime] = []

    async def tell(route: Route) -> None:
        taken.append(route.observed_at)

    async def asked() -> tuple[datetime, datetime]:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        await standing.say("shared", GONE, changed=True)
        taken.clear()
        await asyncio.sleep(1)
        first = clock.now()
        for _ in range(6):
            began = clock.now()
            for _ in range(5):
                await standing.ask(["shared"], clock.now(), lambda _: None)
                await asyncio.sleep(0.02)
            await standing.answer(lambda _, began=began: began)  # type: ignore[misc]
        return first, began

    first, last = on_virtual_time(asked())
    assert taken[0] == first, "who asked first was not answered by the first look"
    assert (len(taken), taken[-1]) == (6, last), "each look answers once all who asked before it"


def test_a_look_that_was_asked_for_is_told_also_where_a_later_one_is_asked_for_meanwhile() -> None:
    taken: list[datetime] = []

    async def tell(route: Route) -> None:
        taken.append(route.observed_at)

    async def asked() -> datetime:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        await standing.say("probed", GONE, changed=True)
        taken.clear()
        await asyncio.sleep(1)
        await standing.ask(["probed"], clock.now(), lambda _: LONG_AGO)
        look = ReadInterval(clock.now(), clock.now() + timedelta(seconds=0.1))
        await asyncio.sleep(0.05)
        await standing.ask(["probed"], clock.now(), lambda _: LONG_AGO)
        await standing.say("probed", GONE, changed=False, look=look)
        assert standing.wanted == {"probed"}
        return look.began

    assert on_virtual_time(asked()) == taken[0]


def test_what_is_seen_one_after_the_other_is_told_at_the_same_time() -> None:
    """A watch shows one event after the other, and the bus syncs each fact to its disk."""
    taken: list[str] = []

    async def tell(route: Route) -> None:
        await asyncio.sleep(0.01)
        taken.append(route.name)

    async def seen() -> float:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        began = clock.monotonic()
        for number in range(60):
            await standing.say(f"{number}", GONE.model_copy(update={"name": f"app{number}"}), changed=True)
        await asyncio.sleep(0.01)
        return clock.monotonic() - began

    assert on_virtual_time(seen()) < 0.1
    assert len(taken) == 60


async def test_what_goes_wrong_in_a_telling_that_was_left_to_itself_is_raised_by_the_next() -> None:
    async def tell(_: Route) -> None:
        await asyncio.sleep(0.01)
        raise ValueError("a mistake of ours")

    standing = Republisher(tell, HandClock(), period_seconds=30)
    await standing.say("a", GONE, changed=True)
    await asyncio.sleep(0.02)
    with pytest.raises(ValueError, match="a mistake of ours"):
        await standing.say("b", GONE, changed=True)


async def test_what_goes_wrong_in_a_telling_that_was_left_to_itself_ends_the_source() -> None:
    """At once, and not with the next word, which may never come."""

    async def tell(_: Route) -> None:
        await asyncio.sleep(0.01)
        raise ValueError("a mistake of ours")

    standing = Republisher(tell, Clock(), period_seconds=3600)
    keeping = asyncio.create_task(standing.keep(lambda: LONG_AGO))
    await standing.say("a", GONE, changed=True)
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(60):
            await keeping
    assert raised.group_contains(ValueError, match="a mistake of ours")


def test_what_is_asked_for_again_and_again_does_not_make_the_bus_count_as_away() -> None:
    """A secondary that many routes share is told without a pause while they fail: the others are told at once."""
    taken: dict[str, float] = {}

    async def tell(route: Route) -> None:
        await asyncio.sleep(0.04)
        taken.setdefault(route.name, asyncio.get_running_loop().time())

    async def crowd() -> list[float]:
        clock = virtual_clock()
        standing = Republisher(tell, clock, period_seconds=30)
        keeping = asyncio.create_task(standing.keep(clock.now))
        await standing.say("shared", GONE, changed=True)
        said_at: dict[str, float] = {}
        for number in range(60):
            await asyncio.sleep(0.01)
            await standing.ask(["shared"], clock.now(), lambda _: clock.now())
            said_at[f"{number}"] = asyncio.get_running_loop().time()
            await standing.say(f"{number}", GONE.model_copy(update={"name": f"{number}"}), changed=True)
        await asyncio.sleep(1)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        return [taken[name] - at for name, at in said_at.items()]

    assert max(on_virtual_time(crowd())) == pytest.approx(0.04)


def test_what_is_repeated_says_until_when_it_is_proven_where_that_is_not_as_long_as_it_is_believed() -> None:
    async def repeated() -> list[Observation]:
        clock, taken = virtual_clock(), list[Observation]()

        async def tell(fact: Observation) -> None:
            taken.append(fact)

        standing = Republisher(tell, clock, period_seconds=4)
        began = clock.now()
        good = Observation(target="service/a/b/c", status=Health.HEALTHY, observed_at=began, stale_seconds=90)

        def proven(_: str) -> datetime:
            return min(began + timedelta(seconds=1), clock.now())

        keeping = asyncio.create_task(standing.keep_each(lambda _: clock.now(), proven))
        await standing.say(good.target, good, changed=True)
        await asyncio.sleep(10)
        await standing.ask([good.target], began + timedelta(seconds=1), proven)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        return taken

    first, *again = on_virtual_time(repeated())
    assert first.valid_seconds is None
    assert len(again) >= 2
    for one in again:
        assert one.valid_seconds is not None
        assert one.observed_at + timedelta(seconds=one.valid_seconds) == first.observed_at + timedelta(seconds=1)
        assert one.since == first.observed_at


async def test_that_it_is_in_doubt_is_older_than_a_look_that_had_begun_when_it_was_told() -> None:
    told: list[Observation] = []

    async def tell(said: Observation) -> None:
        told.append(said)

    clock = HandClock()
    standing = Republisher(tell, clock, period_seconds=30)
    bad = Observation(target="service/a/b", status=Health.UNHEALTHY, signal="health", observed_at=clock.now())
    await standing.say("a", bad, changed=True)
    clock.seconds += 10
    began = clock.now()
    clock.seconds += 0.01
    assert await standing.ask(["a"], began, lambda _: None, lambda _: True)
    clock.seconds += 0.01
    await standing.answer(lambda _: began)  # the look that had begun before ends now
    assert [said.doubted for said in told] == [False, True, False]
    assert [one.observed_at < later.observed_at for one, later in pairwise(told)] == [True, True]
