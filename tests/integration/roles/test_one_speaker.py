"""A process that the others do not hear observes nothing: they may observe in its place. One that is alone goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from bus.memory import MemoryBus
from reactor.clock import Clock
from reactor.roles import fleet, observer
from reactor.roles.fleet import LEASE, Fleet
from reactor.roles.observer import Observer
from tests.clock import HandClock
from tests.integration.roles.conftest import eventually, running

Job = Callable[[], Sequence[asyncio.Task[None]]]


class Source:
    """Where it began, and whether it still runs there."""

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


def observing(own: Fleet, job: Job) -> AbstractAsyncContextManager[asyncio.Task[None]]:
    return running(Observer(own, {"a": job, "b": job}).run)


async def test_sources_end_while_the_bus_is_away_and_begin_anew_afterwards() -> None:
    bus, source = MemoryBus(Clock().now), Source()
    one, two = (Fleet(bus, name, 2, Clock()) for name in ("one", "two"))
    async with two.joined(), observing(one, source.start):
        await eventually(lambda: one.members() == ["one", "two"] and not one._alone and source.began.count(True) == 1)
        bus.down = True
        await eventually(lambda: not any(source.began))
        assert not one.heard
        times, bus.down = len(source.began), False
        await eventually(lambda: one.heard and source.began[times:] == [True])


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
            await eventually(lambda: not one._alone)
            bus.down = True
            await eventually(lambda: one._missed and one.fresh)
            assert len(one.wanted()) == 1  # for a lease the others leave it alone
            clock.seconds += 2 * LEASE
            assert one.wanted() == set()
            bus.down = False
