"""Loops that break are started again, counted, and named while they do not do their work."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bus.errors import Unavailable
from reactor.runtime import supervise, telemetry
from reactor.runtime.errors import Retryable
from reactor.runtime.supervise import Loops, ended, forever


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "PAUSE_FIRST", 0.001)


def failures(loop: str, reason: str) -> float:
    return float(telemetry.loop_failures.labels(loop, reason)._value.get())


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("error", [ValueError("mine"), Retryable("theirs"), Unavailable("the bus"), None])
async def test_a_loop_that_fails_again_and_again_is_counted_and_named(error: Exception | None) -> None:
    loops, times, third = Loops(), 0, asyncio.Event()
    reason = type(error).__name__ if error is not None else "Ended"
    before = failures("router", reason)

    async def broken() -> None:
        nonlocal times
        times += 1
        if times == 3:
            third.set()
            await asyncio.Event().wait()
        if error is not None:
            raise error

    task = asyncio.create_task(forever("router", broken, loops))
    async with asyncio.timeout(60):
        await third.wait()
    assert failures("router", reason) - before == 2
    [trouble] = loops.troubles(now())
    assert trouble.startswith("router fails again and again: ")
    assert str(error or "ended by itself") in trouble
    assert loops.troubles(now() + supervise.PAUSE_MAX + 1) == [], "it has run for so long by then"
    await ended(task)
    assert loops.troubles(now()) == []


async def test_a_loop_that_failed_once_and_runs_again_does_its_work() -> None:
    loops, again = Loops(), asyncio.Event()
    times = 0

    async def once() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise ValueError
        again.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(forever("decider", once, loops))
    async with asyncio.timeout(60):
        await again.wait()
    assert loops.troubles(now()) == []
    await ended(task)


async def test_what_the_world_does_is_one_line_and_a_mistake_of_ours_has_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[Exception] = [Retryable("refused"), KeyError("oops"), Unavailable("away"), Unavailable("away")]
    done = asyncio.Event()

    async def broken() -> None:
        if errors:
            raise errors.pop(0)
        done.set()
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(forever("leftovers", broken))
        async with asyncio.timeout(60):
            await done.wait()
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [
        ("WARNING", False), ("ERROR", True), ("WARNING", False),
    ]  # fmt: skip
    await ended(task)
