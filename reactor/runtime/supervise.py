"""Loops that must not end: a failure is logged and counted, and the loop is started again after a pause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from bus.errors import BusError, Unavailable
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError
from reactor.runtime.retry_backoff import RetryBackoff

log = logging.getLogger(__name__)

PAUSE_FIRST = 0.2
PAUSE_MAX = 10.0
"""Seconds between two starts of a loop that keeps failing, and how long one has to run to count as well again."""
PAUSE_BUS = 1.0
"""The same while the bus is away: what waits for it goes on soon after it is back."""
SAID_AGAIN_SECONDS = 60.0
"""The same complaint of the same loop is logged once in so long."""
FAILURES = 2
"""Failures in a row that count as trouble. A loop that failed once and runs again does its work."""

Complain = Callable[[Exception | None], None]
"""Logs why a loop has ended; None: by itself, which none of them should."""


async def ended(*tasks: asyncio.Task[None], patience: float = 1.0) -> None:
    """Cancel these and wait until they have ended; again after `patience` seconds, if they have not.

    Once is not enough: `asyncio.wait_for` of Python 3.11, which nats-py asks with, loses a cancellation that comes in
    the same instant as its answer, and the loop goes on as if nothing had been. Found by a rolling restart.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=patience)
    await asyncio.gather(*tasks, return_exceptions=True)


async def to_its_end(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Await this; a cancellation that comes meanwhile waits so long for it, then counts."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=seconds)
        await ended(task)
        raise


@dataclass(slots=True)
class _Standing:
    began: float
    running: bool = True
    """False: it waits for its next start."""
    failures: int = 0
    why: str = ""


class Loops:
    """The loops of one process, and which of them do not do their work."""

    def __init__(self) -> None:
        self._standing: dict[str, _Standing] = {}

    def began(self, name: str, now: float) -> None:
        """A loop starts, or starts again. `now`: seconds on the event loop's clock, here as in the others."""
        one = self._standing.setdefault(name, _Standing(now))
        one.began, one.running = now, True

    def failed(self, name: str, error: Exception | None, now: float) -> None:
        """Note that a loop has ended, which it should not."""
        one = self._standing[name]
        one.running = False
        one.failures = 1 if now - one.began > PAUSE_MAX else one.failures + 1
        first = innermost(error) if error is not None else None
        one.why = f"{type(first).__name__}: {first}" if first is not None else "it ended by itself"
        telemetry.loop_failures.labels(name, type(first).__name__ if first is not None else "Ended").inc()

    def gone(self, name: str) -> None:
        """Note that a loop was told to end."""
        self._standing.pop(name, None)

    def troubles(self, now: float) -> list[str]:
        """Say which loops fail again and again, and why."""
        return [
            f"{name} fails again and again: {one.why}"
            for name, one in sorted(self._standing.items())
            if one.failures >= FAILURES and not (one.running and now - one.began > PAUSE_MAX)
        ]


async def forever(
    name: str,
    loop: Callable[[], Awaitable[None]],
    loops: Loops | None = None,
    *,
    complain: Complain | None = None,
    backoff: RetryBackoff | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run the loop until cancelled; start it again when it ends or fails.

    What the world does (a bus that is away, a server that refuses) is a warning; a mistake of ours is an error with its
    traceback, and is started again as well: one broken loop must not take the others with it. `loops` knows of it;
    `complain` and `backoff`: instead of the pauses and the words of here.
    """
    loops, complain = loops or Loops(), complain or _Complaints(name)
    pause, now = PAUSE_FIRST, asyncio.get_running_loop().time
    try:
        while True:
            loops.began(name, began := now())
            error = await _error_of(loop)
            loops.failed(name, error, now())
            complain(error)
            if backoff is not None:
                await sleep(backoff.failed())
                continue
            most = PAUSE_BUS if isinstance(error, Unavailable) else PAUSE_MAX
            pause = PAUSE_FIRST if now() - began > PAUSE_MAX else min(pause * 2, most)
            await sleep(pause)
    finally:
        loops.gone(name)


async def _error_of(loop: Callable[[], Awaitable[None]]) -> Exception | None:
    try:
        await loop()
    except Exception as error:  # noqa: BLE001 - the one place where all loops end; it is logged and counted
        return error
    return None


class _Complaints:
    """Logs the failures of one loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._clock = asyncio.get_running_loop()
        self._said, self._said_at = "", 0.0

    def __call__(self, error: Exception | None) -> None:
        name = self._name
        match error:
            case None:
                return
            case Unavailable():
                if str(error) != self._said or self._clock.time() - self._said_at >= SAID_AGAIN_SECONDS:
                    log.warning("%s waits for the bus: %s", name, error)
                    self._said, self._said_at = str(error), self._clock.time()
            case BusError() | ReactorError():
                log.warning("%s starts again: %s", name, error)
            case _:
                log.error("%s failed, and starts again", name, exc_info=error)


def innermost(error: Exception) -> Exception:
    """Give the first real error in the groups that task groups wrap around it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
