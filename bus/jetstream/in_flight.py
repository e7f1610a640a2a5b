"""A limit of messages in flight: what a server has not answered yet is bounded, and senders are served in their order.

A server takes messages in faster than it stores them. With 6,400 groups on their way to a disk that syncs a thousand a
second, the last one waits for its answer for six seconds: without a bound it is taken for lost before, published again,
and comes behind all the others once more, until all give up (measured).
"""

from __future__ import annotations

import asyncio
from collections import deque

from bus.errors import Unavailable


class InFlightLimit:
    """The messages of one stream that the server has not answered."""

    def __init__(self, most: int) -> None:
        """`most`: messages that may be unanswered at a time; more of them in one piece go alone."""
        self._most = most
        self._unanswered = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def acquire(self, count: int) -> None:
        """Return when so many messages may be sent; `release` them. Raises Unavailable where those before failed."""
        if not self._waiting and self._fits(count):
            self._unanswered += count
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:  # its turn came in the same instant
                self._unanswered -= count
            self._go_on()
            raise

    def release(self, count: int) -> None:
        """Note that `count` messages are answered, or given up."""
        self._unanswered -= count
        self._go_on()

    def fail(self, why: str) -> None:
        """Tell all who wait that those before them failed: each trying for itself would wait as long, one by one."""
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(Unavailable(why))

    def _fits(self, count: int) -> bool:
        return not self._unanswered or self._unanswered + count <= self._most

    def _go_on(self) -> None:
        while self._waiting:
            count, turn = self._waiting[0]
            if turn.done():  # it was cancelled
                self._waiting.popleft()
            elif self._fits(count):
                self._waiting.popleft()
                self._unanswered += count
                turn.set_result(None)
            else:
                return
