"""The only file that reads time.

`now` is the wall clock of this process's start plus the monotonic time since: a wall-clock jump while we run neither
fires nor delays a window. A wall clock that is wrong at the start is set right by the bus (docs/decisions/0012).
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Time as this process sees it."""

    def __init__(self, *, wrong_by: timedelta = timedelta(0)) -> None:
        """`wrong_by`: for tests: how far ahead this machine's wall clock is."""
        self._wall = datetime.fromtimestamp(time.time(), UTC) + wrong_by  # noqa: TID251 - the one place where it is read
        self._monotonic = time.monotonic()

    def align(self, ahead: timedelta) -> None:
        """Go by a clock that is so far ahead of ours. Only before anything was decided by ours: time jumps here."""
        self._wall += ahead

    def now(self) -> datetime:
        """The moment, aware, in UTC. Never goes back, never jumps."""
        return self._wall + timedelta(seconds=time.monotonic() - self._monotonic)

    def monotonic(self) -> float:
        """Seconds from some point in the past: for measuring durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let this many seconds pass."""
        await asyncio.sleep(max(0.0, seconds))
