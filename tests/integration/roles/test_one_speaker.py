"""A process that the others do not hear says nothing: they may observe in its place. One that is alone goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

from bus import subjects
from bus.testing.memory import MemoryBus
from bus.topology import LEASES
from reactor.fleet import fleet, observer
from reactor.fleet.fleet import Fleet
from reactor.fleet.observer import Observer
from reactor.fleet.peers import LEASE
from reactor.runtime.clock import Clock
from tests.clock import HandClock
from tests.integration.roles.conftest import eventually, running

Job = Callable[[], Sequence[asyncio.Task[None]]]


class Source:
    """Source that notes where it began, and whether it still runs there."""

    def __init__(self) -> None:
        self.began: list[bool] = []

    def start(self) -> Sequence[asyncio.Task[None]]:
        return [asyncio.create_task(self._run())]

    async def _run(self) -> None:
        self.began.append(True)
        place = len(self.began) - 1
        try:
            await asyncio.Event().wait()
        finally:
            self.began[place] = False


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((fleet, "HEARTBEAT"), (fleet, "LOOK"), (observer, "LOOK")):
        monkeypatch.setattr(module, name, 0.005)


class Neighbour:
    """Another member as the bus shows it: a heartbeat that is stored, and the process that answers for it."""

    def __init__(self, bus: MemoryBus, name: str = "two") -> None:
        self._bus, self._name = bus, name

    async def comes(self) -> None:
        await self._bus.announce(subjects.alive(self._name))
        await self.beats()

    async def beats(self) -> None:
        value = json.dumps({"name": self._name}).encode()
        await self._bus.store(LEASES).put(subjects.key("member", self._name), value, revision=None)


class Deaf(MemoryBus):
    """A bus on which the next questions are answered as told."""

    def __init__(self, clock: Clock, *answers: bool | None) -> None:
        super().__init__(clock.now)
        self.answers = list(answers)

    async def is_present(self, subject: str, timeout: timedelta) -> bool | None:
        return self.answers.pop(0) if self.answers else await super().is_present(subject, timeout)


def observing(own: Fleet, job: Job) -> AbstractAsyncContextManager[asyncio.Task[None]]:
    return running(Observer(own, {"a": job, "b": job}).run)


async def test_sources_go_on_looking_unheard_while_the_bus_is_away() -> None:
    bus, source = MemoryBus(Clock().now), Source()
    one, two = (Fleet(bus, name, 2, Clock()) for name in ("one", "two"))
    async with two.joined(), observing(one, source.start):
        await eventually(lambda: one.members() == ["one", "two"] and not one._alone and source.began.count(True) == 1)
        bus.down, began = True, [*source.began]
        await eventually(lambda: not one.present)
        assert not one.heard
        assert source.began == began
        bus.down = False
        await eventually(lambda: one.heard)
        await asyncio.sleep(0.05)  # in which they would be given away
        assert source.began == began


async def test_sources_that_others_have_meanwhile_are_ended_when_we_are_heard_again() -> None:
    bus, source = MemoryBus(Clock().now), Source()
    one = Fleet(bus, "one", 2, Clock())
    async with observing(one, source.start):
        await eventually(lambda: source.began == [True, True])
        await Neighbour(bus).comes()
        await eventually(lambda: source.began.count(True) == 1)


async def test_a_process_that_is_alone_goes_on_without_the_bus() -> None:
    bus, source = MemoryBus(Clock().now), Source()
    one = Fleet(bus, "one", 2, Clock())
    async with observing(one, source.start):
        await eventually(lambda: source.began == [True, True])
        bus.down = True
        await eventually(lambda: one._missed)
        assert one.heard
        assert source.began == [True, True]


async def test_a_process_that_is_alone_keeps_its_partitions_while_the_bus_is_slow() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    one, two = (Fleet(bus, name, 2, clock) for name in ("one", "two"))
    async with one.joined():
        clock.seconds += 2 * LEASE
        bus.down = True
        assert one.wanted() == {0, 1}
        bus.down = False
        async with two.joined():
            await eventually(lambda: not one._alone and one.fresh)
            bus.down = True
            await eventually(lambda: one._missed and one.fresh)
            assert len(one.wanted()) == 1  # for a lease the others leave it alone
            clock.seconds += 2 * LEASE
            assert one.wanted() == set()
            bus.down = False


async def test_one_that_joins_begins_with_its_share_and_not_with_everything() -> None:
    bus, source = MemoryBus(Clock().now), Source()
    one, two = (Fleet(bus, name, 2, Clock()) for name in ("one", "two"))
    async with two.joined(), observing(one, source.start):
        await eventually(lambda: bool(source.began))
        assert source.began == [True]
        assert not one.alone


async def test_after_an_outage_no_member_takes_what_the_others_own_until_they_were_silent_for_a_lease() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    one, two = Fleet(bus, "one", 2, clock), Neighbour(bus)
    await two.comes()
    async with one.joined():
        assert len(one.wanted()) == 1
        bus.down = True
        await eventually(lambda: one._missed)
        clock.seconds += 3 * LEASE
        assert one.wanted() == set()
        bus.down = False
        await eventually(lambda: one.fresh)
        assert one.members() == ["one", "two"]
        assert len(one.wanted()) == 1
        assert not one.alone
        for _ in range(3):
            clock.seconds += LEASE / 3 + 0.1
            await eventually(lambda: one.fresh and one._known is not None and one._known.began == clock.seconds)
        assert one.members() == ["one"]
        assert one.alone


async def test_one_that_was_alone_stops_when_another_has_come_before_the_line_broke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "HEARTBEAT", 3600.0)
    clock = HandClock()
    bus = MemoryBus(clock.now)
    one = Fleet(bus, "one", 2, clock)
    async with one.joined():
        assert one.alone
        await Neighbour(bus).comes()
        await eventually(lambda: one.members() == ["one", "two"])
        bus.down = True
        clock.seconds += 2 * LEASE
        assert not one.heard
        assert one.wanted() == set()


async def test_after_a_lost_connection_nothing_is_said_before_we_are_heard_again_and_that_is_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "HEARTBEAT", 3600.0)
    clock, losses = HandClock(), [0]
    bus, source = MemoryBus(clock.now), Source()
    one = Fleet(bus, "one", 2, clock, losses=lambda: losses[0])
    async with observing(one, source.start):
        await eventually(lambda: source.began == [True, True])
        bus.down, losses[0] = True, 1
        clock.seconds += 2 * LEASE
        assert (one.heard, one.present) == (False, True)
        assert one.wanted() == {0, 1}
        bus.down = False
        await eventually(lambda: one.heard)  # an hour before the next heartbeat would be due
        assert one.alone
        assert source.began == [True, True]  # what ran went on


async def test_one_that_connects_again_is_not_gone_because_it_was_not_answered_once() -> None:
    clock = HandClock()
    bus = Deaf(clock)
    one = Fleet(bus, "one", 2, clock)
    await Neighbour(bus).comes()
    async with one.joined():
        bus.answers += [False, True, False, None, False, True]
        await eventually(lambda: not bus.answers)
        assert one.members() == ["one", "two"]
        bus.answers += [False, False]
        await eventually(lambda: one.members() == ["one"])
        await Neighbour(bus).beats()
        await eventually(lambda: one.members() == ["one", "two"])


async def test_after_a_standstill_one_that_was_alone_is_silent_until_its_heartbeat_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "HEARTBEAT", 3600.0)
    clock = HandClock()
    bus = MemoryBus(clock.now)
    one = Fleet(bus, "one", 2, clock)
    async with one.joined():
        clock.standstill.tick()
        clock.seconds += 2 * LEASE
        assert not one.heard
        await eventually(lambda: one.heard)  # an hour before the next heartbeat would be due
