"""Thousands of standing alerts hold up nothing else that the process does."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator

import pytest

from tests.unit.webhook.builders import Api, World, alert, source

ALERTS = 3000


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The CPU time of each step of the event loop, in seconds. The garbage collector's own pauses are left out."""
    taken: list[float] = []
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - before)

    monkeypatch.setattr(asyncio.Handle, "_run", measured)
    gc.disable()
    yield taken
    gc.enable()


async def test_reconciling_thousands_of_alerts_is_done_in_slices(steps: list[float]) -> None:
    world = World()
    world.apis = {"a": Api()}
    alerts = [alert(f"{n:016x}", service=f"s{n}") for n in range(ALERTS)]
    world.apis["a"].lists(*alerts)
    async with world.keeper(source(matchers=('alertname="Down"', 'service=~"s.*"'))) as keeper:
        for start in range(0, ALERTS, 500):
            await world.post(keeper, *alerts[start : start + 500], at=0)
        await world.pass_time(keeper, 31, step=31)
        await asyncio.sleep(0)
        steps.clear()
        await world.pass_time(keeper, 62, step=31)
        await asyncio.sleep(0)
    assert max(steps) < sum(steps) / 8
