"""What a source says now, said again while it stays true: the bus may lose nothing, but readers start late and forget.

The first saying of a change is immediate. If the bus does not take it, it is owed, and said again as soon as it does.
Whatever is said again is dated when it was last known to be so, never when it is said: an old look that passes for a
fresh one undoes what others have seen since. Found by chaos: a source that was cut off moved traffic on its return.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any, Generic, TypeAlias, TypeVar

from bus.messages import Message
from reactor.clock import Clock
from reactor.errors import Retryable

TICKS_PER_PERIOD = 6  # what is due is looked for so often: at most a sixth of the period late
TICK_SECONDS_MAX = 5.0
AT_ONCE = 32  # sayings that wait for the bus at the same time

log = logging.getLogger(__name__)

Said = TypeVar("Said", bound=Message)
Vouched: TypeAlias = Callable[[], float | None]
"""For how many seconds nobody has vouched for what stands; infinite where only each look for itself does; None: it
cannot be believed."""
VouchedEach: TypeAlias = Callable[[str], float | None]
"""The same of what stands under one key."""


@dataclass(slots=True)
class _Entry(Generic[Said]):
    key: str
    fact: Said
    seen_at: float  # when it was found to be so, on the clock's monotonic time
    due_at: float = 0  # on the same; 0: owed, the bus has not taken it yet
    once: bool = False  # forgotten as soon as it is told


class Standing(Generic[Said]):
    """The standing facts of one source, by key."""

    def __init__(self, tell: Callable[[Said], Awaitable[None]], clock: Clock, *, period_seconds: float) -> None:
        self._tell = tell
        self._clock = clock
        self._period = period_seconds
        self._entries: dict[str, _Entry[Said]] = {}
        self._refused = False

    def get(self, key: str) -> Said | None:
        """What stands under this key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.fact

    @property
    def keys(self) -> frozenset[str]:
        """What something is said about."""
        return frozenset(self._entries)

    async def say(self, key: str, fact: Said, *, changed: bool) -> None:
        """Let this stand. It is told at once if it has changed or is due."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(key, fact, self._clock.monotonic())
        entry.fact, entry.seen_at, entry.once = fact, self._clock.monotonic(), False
        if changed:
            entry.due_at = 0
        if entry.due_at <= self._clock.monotonic():
            await self._told(entry)

    async def say_once(self, key: str, fact: Said) -> None:
        """Let this be the last word about it: told at once, or as soon as the bus takes it, and then forgotten."""
        entry = self._entries[key] = _Entry(key, fact, self._clock.monotonic(), once=True)
        await self._told(entry)

    def forget(self, key: str) -> None:
        """Say nothing more about it: silence makes it Unknown in its time."""
        self._entries.pop(key, None)

    async def refresh(self, vouched: float = inf) -> None:
        """Say again what is due. `vouched`: for how many seconds nobody has vouched for all of it together."""
        await self._refresh(lambda _: vouched)

    async def _refresh(self, vouched: VouchedEach) -> None:
        now = self._clock.monotonic()
        believed = [(entry, vouched(entry.key)) for entry in self._entries.values() if entry.due_at <= now]
        due = [(entry, now - age) for entry, age in believed if age is not None]
        for start in range(0, len(due), AT_ONCE):
            await together(self._told(entry, at) for entry, at in due[start : start + AT_ONCE])

    async def keep(self, vouched: Vouched) -> None:
        """Refresh for ever, except while the source itself does not know: then silence is the honest answer."""
        await self.keep_each(lambda _: vouched())

    async def keep_each(self, vouched: VouchedEach) -> None:
        """The same, where what is said about one key may be believed and about another not."""
        tick = min(self._period / TICKS_PER_PERIOD, TICK_SECONDS_MAX)
        while True:
            await self._clock.sleep(tick)
            await self._refresh(vouched)

    async def _told(self, entry: _Entry[Said], vouched_at: float = -inf) -> None:
        age = max(self._clock.monotonic() - max(entry.seen_at, vouched_at), 0)
        fact = entry.fact.model_copy(update={"observed_at": self._clock.now() - timedelta(seconds=age)})
        # Before the first await, so that nobody else tells the same in the meantime.
        entry.due_at = self._clock.monotonic() + self._period
        try:
            await self._tell(fact)
        except Retryable as error:
            entry.due_at = 0
            if not self._refused:
                log.warning("the bus does not take what was seen, it stays owed", extra={"reason": str(error)})
            self._refused = True
            return
        self._refused = False
        if entry.once and self._entries.get(entry.key) is entry:
            del self._entries[entry.key]


async def together(sayings: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Say all of it at once, and wait until it is told.

    What a source has seen in one look is dated now. Said one after the other, the last would be dated when the bus took
    the one before it, and an old look would pass for a fresh one. Found by chaos: a bus that stalls made early writes.
    """
    async with asyncio.TaskGroup() as group:
        for saying in sayings:
            group.create_task(saying)
