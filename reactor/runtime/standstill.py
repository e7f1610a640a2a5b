"""Noticing that this process did not run: stopped by a signal, suspended with its machine, or kept from the processor.

What waits in its sockets afterwards is as old as the standstill is long, and nothing tells it from what was sent since.
So a copy that was kept by a watch proves nothing until it was listed again, and a look that was under way is void.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

TICK_SECONDS = 0.25
LIMIT = timedelta(seconds=0.75)
"""Time between two ticks. A shorter standstill is not noticed: words are dated wrong by less than this."""
LAP = timedelta(seconds=5)
"""A process that did not run for longer was stopped (SIGSTOP, a paused machine): others may do its work by now."""
NEVER = datetime.min.replace(tzinfo=UTC)

log = logging.getLogger(__name__)


class Standstill:
    """The newest standstill of this process, while `run` runs."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._ticked_at: datetime | None = None
        self._ended_at = self._long_ended_at = NEVER
        self._wakers: set[Callable[[], None]] = set()

    @property
    def ended_at(self) -> datetime:
        """End of the newest one; NEVER if there was none. Noticed at once, by whichever task runs first."""
        self._notice()
        return self._ended_at

    @property
    def long_ended_at(self) -> datetime:
        """The same of the newest one that was longer than LAP."""
        self._notice()
        return self._long_ended_at

    @property
    def is_watched(self) -> bool:
        """True if `run` runs, so that standstills are noticed."""
        return self._ticked_at is not None

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each one, until the function that is given back is called."""
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)

    def tick(self) -> None:
        """Note that the process runs."""
        self._notice()
        self._ticked_at = self._now()

    async def run(self) -> None:
        """Tick until cancelled."""
        try:
            while True:
                self.tick()
                await asyncio.sleep(TICK_SECONDS)
        finally:
            self._ticked_at = None

    def _notice(self) -> None:
        now = self._now()
        if self._ticked_at is None or now - self._ticked_at <= LIMIT:
            return
        seconds = (now - self._ticked_at).total_seconds()
        self._ticked_at = self._ended_at = now
        if seconds > LAP.total_seconds():
            self._long_ended_at = now
        log.warning("this process was suspended for %.1f s: what it saw before is looked at again", seconds)
        for wake in [*self._wakers]:
            wake()
