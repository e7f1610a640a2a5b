"""Slots for actions: what one cluster does not answer takes no other cluster's turn.

A cluster gets a quarter of the slots (a bulkhead), and one more with each answer, up to three quarters, until none of
its actions is left (slow start). After a time-out it gets one action at a time, until one is answered (a circuit
breaker): the others go back to the queue at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from bus.messages import Action, Outcome, ZoneStep
from reactor.actions.outcomes import Waited
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock

SHARE = 4
"""A cluster gets one slot in so many before it has answered, and leaves at least as many to the others."""
PATIENCE_SECONDS = 0.5
"""Seconds to wait for a free slot before the action goes back to the queue, where others may wait behind it."""
PATIENCE_SECONDS_MAX = 5.0
"""Seconds to wait where no others wait: half of the time after which an action that could not be begun leaves the
queue."""
BUSY_SECONDS = 0.5
"""Seconds until an action that found no slot is redelivered."""
TIMED_OUT_SECONDS = 2.5
"""An API that did not answer in so long has timed out; one that refused at once has answered."""
_UNAVAILABLE = frozenset({"ApiUnavailable", "ClusterUnreachable", "NotifierUnavailable"})


class _Share(asyncio.Semaphore):
    """The slots of one cluster. Lives as long as one of its actions has a slot, or waits for one."""

    def __init__(self, first: int, most: int) -> None:
        super().__init__(first)
        self._left = most - first

    def grow(self) -> None:
        if self._left > 0:
            self._left -= 1
            self.release()


class Slots:
    """The slots of one executor."""

    def __init__(self, concurrency: int, clock: Clock, *, crowded: Callable[[], bool] = lambda: True) -> None:
        """`crowded`: whether other actions may wait in the queue until some of those here are done or go back."""
        self._clock = clock
        self._crowded = crowded
        self._all = asyncio.Semaphore(concurrency)
        self._first = max(1, concurrency // SHARE)
        self._most = max(self._first, concurrency - self._first)
        self._shares: WeakValueDictionary[str, _Share] = WeakValueDictionary()
        self._silent: set[str] = set()
        self._trials: set[str] = set()

    async def run(self, action: Action, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Carry an action out in a slot. Raises Waited where there is none, and what `work` raises."""
        peers = action.peers
        async with self._trial(peers) as tried, self._slot(peers):
            self._not_silent(peers - tried)  # it may have timed out while a slot was waited for
            began = self._clock.monotonic()
            outcome = await work()
            if not isinstance(action, ZoneStep):  # whose time-outs may be those of a cloud's API
                self._note_outcome(peers, outcome, self._clock.monotonic() - began)
            return outcome

    @asynccontextmanager
    async def _trial(self, peers: frozenset[str]) -> AsyncIterator[frozenset[str]]:
        silent = peers & self._silent
        self._not_silent(silent & self._trials)
        self._trials |= silent
        try:
            yield silent
        finally:
            self._trials -= silent

    def _not_silent(self, peers: frozenset[str]) -> None:
        if silent := peers & self._silent:
            _count_refusals(silent, "silent")
            raise Waited(
                f"{', '.join(sorted(silent))} did not answer: one action at a time is tried", after=BUSY_SECONDS
            )

    @asynccontextmanager
    async def _slot(self, peers: frozenset[str]) -> AsyncIterator[None]:
        # Always in this order: no two wait for each other. Kept over all turns, with what each has grown by.
        shares = [self._shares.setdefault(name, _Share(self._first, self._most)) for name in sorted(peers)]
        until = self._clock.monotonic() + PATIENCE_SECONDS_MAX
        while True:
            async with AsyncExitStack() as held:
                if await _try_to_enter(held, [*shares, self._all]):
                    yield
                    return
            # One that goes back begins again at the end of the line, and slots may be free before it is there.
            if self._crowded() or peers & self._silent or self._clock.monotonic() >= until:
                _count_refusals(peers, "busy")
                raise Waited(f"no slot is free for {', '.join(sorted(peers))}", after=BUSY_SECONDS)

    def _note_outcome(self, peers: frozenset[str], outcome: Outcome, seconds: float) -> None:
        if outcome.reason not in _UNAVAILABLE or seconds < TIMED_OUT_SECONDS:
            self._silent -= peers
            for name in peers:
                self._shares[name].grow()
        elif len(peers) == 1:  # of several it is not known which one
            self._silent |= peers


async def _try_to_enter(held: AsyncExitStack, wanted: Iterable[asyncio.Semaphore]) -> bool:
    """Acquire all of these into `held`. True if all were free within PATIENCE_SECONDS."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for one in wanted:
                await held.enter_async_context(one)
    except TimeoutError:
        return False
    return True


def _count_refusals(peers: Iterable[str], reason: str) -> None:
    for name in peers:
        telemetry.slots_refused.labels(name, reason).inc()
