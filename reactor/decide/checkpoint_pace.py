"""Pace of a partition's checkpoints: soon after news, seldom where only dates have moved on.

What was read after the last checkpoint is read again by the next owner, and folding it in again changes nothing. So a
checkpoint only bounds how much that is, and how old the groups are that people see.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from reactor.runtime.clock import Clock

CHECKPOINT = timedelta(seconds=1)
"""Least time between two checkpoints when there is news: groups that owe nothing new, and the position."""
ANSWERS = timedelta(milliseconds=100)
"""Least time from the first news to its checkpoint: the looks that a decision lacks come meanwhile, are not delayed by
the write, and go into the same checkpoint."""
REPEATS = timedelta(seconds=30)
"""Time between two checkpoints of groups of which only dates have moved on: sources repeat the current state once in
this time."""
FACTS_MAX = 10_000
"""Facts since the last checkpoints, over all partitions of a process, from which groups are written as if there were
news: the next owners read them again, in about a second."""
FACTS_MIN = 100
"""Least facts since its checkpoint for a partition to be written because of FACTS_MAX."""
FOREVER = timedelta(days=1)


WRITERS = 1
"""Partitions of a process that write a checkpoint at the same time: what a decision stores waits for the writes before
it, with all of 64 at once on a busy disk for more than a second (measured)."""


class CheckpointTurn:
    """The place of one partition among those of its process that want to write a checkpoint: first come, first
    served. A partition reads on while it waits."""

    def __init__(self, writers: asyncio.Semaphore) -> None:
        self._writers = writers
        self.coming: asyncio.Task[bool] | None = None
        """Done when it is this partition's turn; None: it is not in the line."""

    def get_in_line(self) -> None:
        """Be the last one in the line, unless the partition is in it already."""
        self.coming = self.coming or asyncio.create_task(self._writers.acquire())

    @property
    def is_ours(self) -> bool:
        """True if the partition may write now."""
        return self.coming is not None and self.coming.done() and not self.coming.cancelled()

    def leave(self) -> None:
        """Let the next one write."""
        if self.is_ours:
            self._writers.release()
        elif self.coming is not None:
            self.coming.cancel()
        self.coming = None


class Unsaved:
    """Number of facts that the partitions of one process have read since their checkpoints."""

    def __init__(self) -> None:
        self.facts = 0


class CheckpointPace:
    """The pace of one partition's checkpoints."""

    def __init__(self, clock: Clock, process: Unsaved) -> None:
        self._clock = clock
        self._process = process
        self._began = clock.monotonic()
        self._news_at: float | None = None
        """Monotonic time of the first news since the last checkpoint began; None: no news."""
        self._facts = 0

    def read(self, facts: int) -> None:
        """Note that so many facts were read."""
        self._facts += facts
        self._process.facts += facts

    def begin(self) -> None:
        """Note that a checkpoint begins: what is read from now on is not in it."""
        self.leave()
        self._began, self._news_at = self._clock.monotonic(), None

    def leave(self) -> None:
        """Note that what was read is nothing that this process still has to store."""
        self._process.facts -= self._facts
        self._facts = 0

    def wait(self, *, news: bool, changed: bool) -> float:
        """Give in how many seconds the next checkpoint is due, 0 or less: now. `changed`: whether anything has."""
        now = self._clock.monotonic()
        if not news:
            self._news_at = None
            crowded = self._facts >= FACTS_MIN and self._process.facts >= FACTS_MAX
            after = CHECKPOINT if crowded else REPEATS if changed or self._facts else FOREVER
            return self._began + after.total_seconds() - now
        self._news_at = now if self._news_at is None else self._news_at
        return max(self._began + CHECKPOINT.total_seconds(), self._news_at + ANSWERS.total_seconds()) - now
