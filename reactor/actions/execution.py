"""One attempt to carry out one action: every write of it goes through its ExecutionContext.

A process that was stopped (SIGSTOP, a paused machine), or an API that is slow, puts time between a decision and its
write. By then the decider may want something else, or another process may be undoing the action, and every precondition
may hold again. So each write is preceded by the question whether it may still be begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from reactor.actions.outcomes import OutOfTime
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock

StillWanted = Callable[[], Awaitable[None]]
"""Returns if the decider wants the action now. Raises Declined (CalledOff) if not, Waited if it gives no answer."""
LAND_SECONDS = 1.0
"""Seconds for a write under way to be answered when its caller is cancelled."""

T = TypeVar("T")


async def _always() -> None:
    """Allow the write: nothing has been decided on it, as for a person's own command."""


class ExecutionContext:
    """Checks before each write of one attempt, and the state of its last write."""

    def __init__(self, still_wanted: StillWanted = _always) -> None:
        self._still_wanted = still_wanted
        self._may_begin: Callable[[], bool] = lambda: True
        self._seconds_max: float | None = None
        self.unanswered = False
        """True if the attempt was cancelled while a write was under way: it may still take effect."""

    def limit(self, clock: Clock, *, begin_within: float, take_at_most: float) -> None:
        """Let writes begin only for `begin_within` seconds from now, and each take at most `take_at_most` seconds."""
        ends = clock.monotonic() + begin_within
        self._may_begin = lambda: clock.monotonic() < ends
        self._seconds_max = take_at_most

    async def write(self, what: str, send: Callable[[], Awaitable[T]]) -> T:
        """Send a write if it may be begun. Raises Declined (CalledOff), Waited, OutOfTime, and what `send` raises."""
        await self._still_wanted()
        if not self._may_begin():
            raise OutOfTime(f"{what}: the time of this call is over, so nothing more is begun")
        sending = asyncio.ensure_future(send())
        try:
            done, _ = await asyncio.wait([sending], timeout=self._seconds_max)
        except asyncio.CancelledError:
            # What follows (an undo, by another process) reads the world: it must find this write landed.
            done, _ = await asyncio.wait([sending], timeout=LAND_SECONDS)
            self.unanswered = not done
            _ended(sending)
            raise
        if not done:
            _ended(sending)
            raise ApiUnavailable(f"{what} got no answer within {self._seconds_max:g} s")
        return sending.result()


def _ended(sending: asyncio.Future[T]) -> None:
    """End it, with its error, if it has one, as seen: its caller gets another one."""
    sending.cancel()
    sending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
