"""A process that the others do not hear observes nothing: they may observe in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bus.memory import MemoryBus
from reactor.clock import Clock
from reactor.roles import fleet, observer
from reactor.roles.fleet import Fleet
from reactor.roles.observer import Observer


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.001)


async def test_a_source_ends_while_the_bus_is_away_and_begins_anew_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((fleet, "HEARTBEAT"), (fleet, "LOOK"), (observer, "LOOK")):
        monkeypatch.setattr(module, name, 0.005)
    bus, began = MemoryBus(Clock().now), list[bool]()

    async def source() -> None:
        began.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            began[-1] = False

    one = Observer(Fleet(bus, "one", 1, Clock()), {"source": lambda: [asyncio.create_task(source())]})
    task = asyncio.create_task(one.run())
    await eventually(lambda: began == [True])
    bus.down = True
    await eventually(lambda: began == [False])
    bus.down = False
    await eventually(lambda: began == [False, True])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
