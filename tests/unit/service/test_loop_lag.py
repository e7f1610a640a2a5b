"""Lag of the event loop is measured, and the garbage collector holds it for a short time only."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping
from typing import Any

import pytest

from reactor.runtime import loop_lag
from reactor.runtime.garbage import ShortPauses, stop_collecting
from tests.clock import on_virtual_time
from tests.unit.webhook.builders import counted


def test_a_step_that_holds_the_loop_is_measured_and_told(caplog: pytest.LogCaptureFixture) -> None:
    before, held = counted("reactor_loop_lag_seconds_sum"), 1.5

    async def measured() -> None:
        task = asyncio.create_task(loop_lag.measure())
        await asyncio.sleep(0)
        loop: Any = asyncio.get_running_loop()
        loop._virtual += loop_lag.TICK_SECONDS + held  # a step that computes for so long
        await asyncio.sleep(loop_lag.TICK_SECONDS / 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    on_virtual_time(measured())
    assert counted("reactor_loop_lag_seconds_sum") - before == pytest.approx(held)
    assert any("was busy, or kept from the processor" in record.getMessage() for record in caplog.records)


async def test_what_has_survived_a_full_collection_is_not_looked_at_again() -> None:
    pauses, full = list[float](), 0.0

    def timed(phase: str, info: Mapping[str, Any]) -> None:
        nonlocal full
        if info["generation"] != 2:
            return
        if phase == "start":
            full = time.thread_time()
        else:
            pauses.append(time.thread_time() - full)

    kept = [[number] for number in range(400_000)]
    task = asyncio.create_task(ShortPauses().run())
    await asyncio.sleep(0)
    gc.callbacks.append(timed)
    try:
        gc.collect()
        gc.collect()
        assert gc.get_freeze_count() >= len(kept)
        assert pauses[1] < pauses[0] / 3
        assert counted("reactor_gc_pause_seconds_count", generation="2") >= 2
    finally:
        gc.callbacks.remove(timed)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert gc.get_freeze_count() == 0  # who comes after us finds it as it was


async def test_a_process_that_ends_looks_at_nothing_any_more() -> None:
    """With many groups the collections of a stop took longer than the stop may."""
    kept = [[number] for number in range(100_000)]
    task = asyncio.create_task(ShortPauses().run())
    await asyncio.sleep(0)
    try:
        stop_collecting()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert gc.get_freeze_count() >= len(kept)
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


async def test_the_young_objects_are_looked_at_seldom_while_it_runs() -> None:
    before, looked = gc.get_threshold(), 0

    def counted_young(phase: str, _info: Mapping[str, Any]) -> None:
        nonlocal looked
        looked += phase == "start"

    task = asyncio.create_task(ShortPauses().run())
    await asyncio.sleep(0)
    gc.callbacks.append(counted_young)
    try:
        kept = [[number] for number in range(50_000)]  # a collection at each 700 of these: 71
    finally:
        gc.callbacks.remove(counted_young)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(kept) == 50_000
    assert looked <= 6
    assert gc.get_threshold() == before
