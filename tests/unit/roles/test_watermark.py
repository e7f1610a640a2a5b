"""Up to when is all known that came in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bus import subjects
from bus.port import Outgoing
from bus.testing.memory import MemoryBus
from bus.topology import FACTS, INBOX, ROUTERS
from reactor.decide import watermark
from reactor.decide.watermark import Watermark
from tests.clock import HandClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON = timedelta(milliseconds=1)


def observed(number: int) -> Outgoing:
    return Outgoing(subjects.observation("probe", f"t{number}"), b"", f"observed-{number}")


async def test_all_is_known_when_the_inbox_is_empty_and_every_fact_is_read() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        subject = Watermark(bus, clock, reading)
        assert await subject.up_to(NOW, reading.position) == NOW
        await bus.publish(Outgoing(subjects.fact(3, "observation", "t"), b"", "fact"))
        clock.seconds = 1
        assert await subject.up_to(clock.now(), reading.position) is None
        await reading.next(SOON)
        assert await subject.up_to(clock.now(), reading.position) == clock.now()


async def test_facts_that_come_as_fast_as_they_are_read_delay_no_partition() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        subject = Watermark(bus, clock, reading)
        await bus.publish(Outgoing(subjects.fact(3, "observation", "t"), b"", "first"))
        assert await subject.up_to(NOW, reading.position) is None
        await reading.next(SOON)
        await bus.publish(Outgoing(subjects.fact(3, "observation", "t"), b"", "second"))
        assert await subject.up_to(NOW, reading.position) == NOW


async def test_what_was_waited_for_is_known_once_it_is_read_without_another_question() -> None:
    """A question takes as long as the bus takes; facts that come as fast as they are read would add one to each."""
    clock = HandClock()
    bus = MemoryBus(clock.now)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        subject = Watermark(bus, clock, reading)
        await bus.publish(Outgoing(subjects.fact(3, "observation", "t"), b"", "first"))
        assert await subject.up_to(NOW, reading.position) is None
        await reading.next(SOON)
        bus.down = True
        assert await subject.up_to(NOW, reading.position) == NOW
        assert await subject.up_to(NOW + SOON, reading.position) is None, "a later moment has to be asked about"


async def test_what_came_in_before_is_waited_for_and_what_comes_in_later_is_not() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    await bus.publish(observed(1))
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading, bus.work(ROUTERS, batch=9) as router:
        subject = Watermark(bus, clock, reading)
        assert await subject.up_to(NOW, reading.position) is None
        clock.seconds = 1
        await bus.publish(observed(2))
        [first, _] = await router.next(SOON)
        assert await subject.up_to(NOW, reading.position) is None
        await router.ack([first])
        assert await subject.up_to(NOW, reading.position) == NOW
        assert await subject.up_to(clock.now(), reading.position) is None, (
            "asked of a later moment, the second one counts too"
        )


async def test_nothing_is_known_while_the_bus_is_away() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        bus.down = True
        assert await Watermark(bus, clock, reading).up_to(NOW, reading.position) is None


async def test_a_message_that_no_router_gets_done_does_not_stop_everything_without_end() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    await bus.publish(observed(1))
    await bus.publish(observed(2))
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading, bus.work(ROUTERS, batch=9) as router:
        subject = Watermark(bus, clock, reading)
        assert await subject.up_to(NOW, reading.position) is None
        clock.seconds = watermark.STUCK_SECONDS - 1
        assert await subject.up_to(NOW, reading.position) is None
        await router.ack((await router.next(SOON))[:1])  # it gets on: patience restarts
        clock.seconds += 2
        assert await subject.up_to(NOW, reading.position) is None
        clock.seconds += watermark.STUCK_SECONDS
        assert await subject.up_to(NOW, reading.position) is not None


async def test_a_bus_that_was_wiped_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    await bus.publish(observed(1))
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        subject = Watermark(bus, clock, reading)
        assert await subject.up_to(NOW, reading.position) is None
        other = MemoryBus(clock.now)
        monkeypatch.setattr(bus, "extent", other.extent)
        assert (await other.extent(INBOX)).last == 0
        assert await subject.up_to(NOW, reading.position) == NOW
