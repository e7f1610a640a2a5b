"""Loops that must not end: a failure is logged and counted, and the loop is started again after a pause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bus.errors import BusError, Unavailable
from reactor.errors import ReactorError

log = logging.getLogger(__name__)

PAUSE_FIRST = 0.2
PAUSE_MAX = 10.0
"""Seconds between two starts of a loop that keeps failing."""
PAUSE_BUS = 1.0
"""The same while the bus is away: what waits for it goes on soon after it is back."""
SAID_AGAIN_SECONDS = 60.0
"""The same complaint of the same loop is logged once in so long."""


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


async def forever(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    """Run the loop until cancelled; start it again when it ends or fails.

    What the world does (a bus that is away, a server that refuses) is a warning; a mistake of ours is an error with its
    traceback, and is started again as well: one broken loop must not take the others with it.
    """
    pause = PAUSE_FIRST
    clock = asyncio.get_running_loop()
    said, said_at = "", 0.0
    while True:
        began, most = clock.time(), PAUSE_MAX
        try:
            await loop()
        except Unavailable as error:
            most = PAUSE_BUS
            if str(error) != said or clock.time() - said_at >= SAID_AGAIN_SECONDS:
                log.warning("%s waits for the bus: %s", name, error)
                said, said_at = str(error), clock.time()
        except (BusError, ReactorError) as error:
            log.warning("%s starts again: %s", name, error)
        except Exception:
            log.exception("%s failed, and starts again", name)
        pause = PAUSE_FIRST if clock.time() - began > PAUSE_MAX else min(pause * 2, most)
        await asyncio.sleep(pause)
