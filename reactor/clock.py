"""The only file that reads time.

`now` is the wall clock of this process's start plus the monotonic time since: a wall-clock jump while we run neither
fires nor delays a window. `lap` notices that the process was stopped (SIGSTOP, a paused machine).
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Time as this process sees it."""

    def __init__(self) -> None:
        self._wall = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251 - the one place where it is read
        self._monotonic = time.monotonic()

    def now(self) -> datetime:
        """The moment, aware, in UTC. Never goes back, never jumps."""
        return self._wall + timedelta(seconds=time.monotonic() - self._monotonic)

    def monotonic(self) -> float:
        """Seconds from some point in the past: for measuring durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let this many seconds pass."""
        await asyncio.sleep(max(0.0, seconds))
