"""Publishes what a source says now, and repeats it while it is true: the bus loses nothing, but readers start late and
forget.

The first saying of a change is immediate. If the bus does not take it, it is owed: no look waits for the bus, and what
is owed is tried again every `RETRY_SECONDS`. Only the last word of each key is owed: its `since` says how long it has
been so. Whatever is said again is dated when it was last known to be so, never when it is said: an old look that passes
for a fresh one undoes what others have seen since. Found by chaos: a source that was cut off moved traffic on its
return.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Set
from datetime import datetime
from math import inf
from typing import Any, Generic, TypeAlias

from bus.messages import Observation
from reactor.clients.changes import ReadInterval
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from reactor.sources.standing_fact import LONG_AGO, Said, StandingFact, dated, doubtful
from reactor.sources.wanted_looks import WantedLooks

TICKS_PER_PERIOD = 6  # what is due is looked for so often: at most a sixth of the period late
TICK_SECONDS_MAX = 5.0
JUST_SECONDS = 0.5
"""Seconds within which what was told is not told again on request: two may ask at the same time, and a reader that
still lacks it asks again after a second."""
AT_ONCE = 32  # sayings that wait for the bus at the same time
RETRY_SECONDS = 0.2
LOOK_ON_SECONDS = 0.001
"""Seconds that a look waits for the bus: what fails at the same moment comes with the next event of a watch. A bus that
syncs to a disk takes some milliseconds for each, and the last of hundreds would wait for the sum of them."""
PATIENCE_SECONDS = 0.25  # a bus that takes longer is away
log = logging.getLogger(__name__)

Seen: TypeAlias = Callable[[], datetime | None]
"""Gives the time up to which the current state is known to be so; LONG_AGO where only each look for itself says it;
None: it cannot be believed now."""
SeenEach: TypeAlias = Callable[[str], datetime | None]
"""The same of the state under one key."""
Doubted: TypeAlias = Callable[[str], bool]
"""True if a server has said that what is under this key is gone, and is not believed."""
OnFactsLost: TypeAlias = Callable[[Callable[[], None]], Callable[[], None]]
"""Registers a function that is called each time that the bus has lost what was told; gives the function that ends
this."""


def never_doubted(_: str) -> bool:
    """False: no server lists it."""
    return False


def no_facts_lost(_: Callable[[], None]) -> Callable[[], None]:
    """Do nothing: without a bus no fact is lost."""
    return lambda: None


class Republisher(Generic[Said]):
    """The standing facts of one source, by key."""

    def __init__(
        self, tell: Callable[[Said], Awaitable[None]], clock: Clock, *, period_seconds: float,
        on_facts_lost: OnFactsLost = no_facts_lost,
    ) -> None:  # fmt: skip
        self._tell = tell
        self._on_facts_lost = on_facts_lost
        self._clock = clock
        self._period = period_seconds
        self._entries: dict[str, StandingFact[Said]] = {}
        self._proven: SeenEach | None = None
        self._wanted = WantedLooks()
        self._telling: set[asyncio.Task[None]] = set()
        self._away = asyncio.Event()
        """Set while the bus has not taken the last word in time."""
        self._mistake: BaseException | None = None
        """Exception of a telling that ran in the background: a mistake of ours, which ends the source."""
        self._mistaken = asyncio.Event()
        self._refused = False
        self._kept = False
        """True while `keep` tries again what is owed."""

    def get(self, key: str) -> Said | None:
        """The current state under this key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.fact

    def seen_at(self, key: str) -> datetime | None:
        """Time at which this was last found to be so; None: nothing is said under this key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.seen_at

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def keys(self) -> frozenset[str]:
        """Keys about which something is said."""
        return frozenset(self._entries)

    @property
    def wanted(self) -> Set[str]:
        """Of what a look is asked for that has not come yet."""
        return self._wanted.keys

    def wanted_from(self, key: str) -> datetime | None:
        """Give the moment at which that look is to begin, or later; None: no look is asked for."""
        return self._wanted.moment(key)

    async def say(
        self, key: str, fact: Said, *, changed: bool, look: ReadInterval | None = None, unbroken: bool = True,
        due: bool = False,
    ) -> None:  # fmt: skip
        """Set the state. It is told at once if it has changed, is due or was asked for.

        `look`: what found it; default: one of this moment. `unbroken`: whether no look was missed since the last one.
        `due`: what has not changed is told now, too, and goes on from when it began.
        """
        look = look or ReadInterval(self._clock.now(), self._clock.now())
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = StandingFact(key, fact, look.ended, look.ended)
        elif changed or entry.once or not unbroken:
            entry.since = entry.seen_at = look.ended
            entry.due_at, entry.known_until, entry.proven_until = 0, LONG_AGO, LONG_AGO
        if due:
            entry.due_at, entry.known_until = 0, max(entry.known_until, look.ended)
        entry.fact, entry.seen_at, entry.once = fact, max(entry.seen_at, look.began), False
        if self._wanted.answered(key, entry.seen_at) is not None:
            entry.due_at = 0
        elif key in self.wanted and isinstance(fact, Observation) and fact.unanswered_until is not None:
            entry.due_at = 0  # of what hangs there is no newer look when this one ends
        if entry.due_at <= self._clock.monotonic():
            await self._soon(entry)

    async def say_once(self, key: str, fact: Said) -> None:
        """Let this be the last word about it: told at once, or as soon as the bus takes it, and then forgotten."""
        self._wanted.forget(key)
        now = self._clock.now()
        entry = self._entries.setdefault(key, StandingFact(key, fact, now, now))
        entry.fact, entry.since, entry.seen_at, entry.due_at, entry.once = fact, now, now, 0, True
        entry.known_until = entry.proven_until = LONG_AGO
        await self._soon(entry)

    def forget(self, key: str) -> None:
        """Say nothing more about it: silence makes it Unknown in its time."""
        self._entries.pop(key, None)
        self._wanted.forget(key)

    async def ask(
        self, keys: Iterable[str], not_before: datetime, seen: SeenEach, doubted: Doubted = never_doubted
    ) -> bool:
        """Tell again what was seen at this moment or later; the rest as soon as it is seen, and of what is doubted that
        it is. Gives whether a look is needed for that."""
        asked = [key for key in dict.fromkeys(keys) if key in self._entries and not self._entries[key].once]
        for key in asked:
            self._wanted.ask(key, not_before)
        await self._answer(asked, seen)
        waiting = [key for key in asked if key in self.wanted]
        await gather(self._told_doubt(self._entries[key]) for key in waiting if doubted(key))
        return bool(waiting)

    async def _told_doubt(self, entry: StandingFact[Said]) -> None:
        try:
            await self._tell(doubtful(entry))
        except Retryable as error:  # a decider that has to know asks again in a second
            log.debug("the bus does not take that a list is doubted", extra={"reason": str(error)})

    async def answer(self, seen: SeenEach) -> None:
        """Tell what was asked for and has been seen by now."""
        if self.wanted:
            await self._answer([*self.wanted], seen)

    async def _answer(self, keys: Iterable[str], seen: SeenEach) -> None:
        answered: list[tuple[StandingFact[Said], datetime]] = []
        for key in keys:
            entry, until = self._entries[key], seen(key)
            moment = None if until is None else self._wanted.answered(key, max(entry.seen_at, until))
            if until is not None and moment is not None and not self._was_just_told(entry, moment):
                entry.due_at = 0
                answered.append((entry, until))
        await gather(self._soon(entry, until) for entry, until in answered)

    def _was_just_told(self, entry: StandingFact[Said], moment: datetime) -> bool:
        """True if its fact was told a moment ago, as of this moment or later."""
        return entry.told_of >= moment and self._clock.monotonic() - entry.told_at < JUST_SECONDS

    async def _refresh(self, seen: SeenEach) -> None:
        """Say again what is due. `seen`: until when each is known to be so; None: not at all."""
        now = self._clock.monotonic()
        believed = [(entry, seen(entry.key)) for entry in self._entries.values() if entry.due_at <= now]
        due = [(entry, until) for entry, until in believed if until is not None]
        for start in range(0, len(due), AT_ONCE):
            await gather(self._tell_newest(entry, until) for entry, until in due[start : start + AT_ONCE])

    async def keep(self, seen: Seen) -> None:
        """Refresh without end, except while the source itself does not know: then silence is the honest answer."""
        await self.keep_each(lambda _: seen())

    async def keep_each(self, seen: SeenEach, proven: SeenEach | None = None) -> None:
        """The same, where what is said about one key may be believed and about another not. `proven`: until when the
        source can prove it, where that is not as long."""
        self._kept, self._proven = True, proven
        forget = self._on_facts_lost(self._owe_all)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._repeat(seen))
                group.create_task(self._retry(seen))
                group.create_task(self._raise_mistake())
        finally:
            self._kept = False
            forget()
            for telling in self._telling:
                telling.cancel()

    def _owe_all(self) -> None:
        for entry in self._entries.values():
            entry.due_at, entry.told_at = 0, -inf
        self._away.set()  # told as soon as the bus takes it

    async def _repeat(self, seen: SeenEach) -> None:
        tick = min(self._period / TICKS_PER_PERIOD, TICK_SECONDS_MAX)
        while True:
            await self._clock.sleep(tick)
            if not self._away.is_set():
                await self._refresh(seen)

    async def _retry(self, seen: SeenEach) -> None:
        while True:
            await self._away.wait()
            await self._clock.sleep(RETRY_SECONDS)
            # What was said meanwhile is owed also where the bus took this; as soon as it takes anything, it is there.
            while self._away.is_set() and any(entry.telling for entry in self._entries.values()):
                await self._clock.sleep(RETRY_SECONDS)
            owed = [(entry, seen(entry.key)) for entry in self._entries.values() if not entry.due_at]
            first = next(((entry, until) for entry, until in owed if until is not None), None)
            if first is None:
                self._away.clear()
                continue
            await self._tell_newest(*first)  # one to find out with whether the bus is there
            if not self._away.is_set():
                await self._refresh(seen)

    async def _soon(self, entry: StandingFact[Said], seen: datetime = LONG_AGO) -> None:
        """Tell it, and leave it to itself where the bus takes its time. While the bus is away it is only owed."""
        if self._mistake is not None:
            raise self._mistake
        entry.due_at = 0
        if self._away.is_set() and self._kept:
            return
        telling = asyncio.create_task(self._tell_newest(entry, seen))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        try:
            await asyncio.wait({telling}, timeout=LOOK_ON_SECONDS)
        except asyncio.CancelledError:
            telling.cancel()
            raise
        if telling.done():
            telling.result()
        else:
            telling.add_done_callback(self._keep_mistake)

    def _keep_mistake(self, telling: asyncio.Task[None]) -> None:
        if not telling.cancelled() and (mistake := telling.exception()) is not None:
            self._mistake = mistake
            self._mistaken.set()

    async def _raise_mistake(self) -> None:
        await self._mistaken.wait()
        if self._mistake is not None:
            raise self._mistake

    async def _tell_newest(self, entry: StandingFact[Said], seen: datetime = LONG_AGO) -> None:
        entry.known_until = max(entry.known_until, seen)
        proof = seen if self._proven is None else self._proven(entry.key) or LONG_AGO
        entry.proven_until = max(entry.proven_until, proof)
        if entry.telling:
            return  # the call that tells it already tells the newest as well
        entry.telling = True
        try:
            while entry.due_at <= self._clock.monotonic():
                # Before the first await, so that what is said meanwhile is due again.
                entry.told_at = self._clock.monotonic()
                entry.due_at = entry.told_at + self._period
                entry.told_of = max(entry.seen_at, entry.proven_until)
                # For each fact by itself: what many ask for is told again and again, and the bus is there.
                late = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._away.set)
                try:
                    await self._tell(dated(entry))
                finally:
                    late.cancel()
                self._refused = False
                self._away.clear()
        except Retryable as error:
            entry.due_at, entry.told_at = 0, -inf
            if not self._refused:
                log.warning("the bus does not take what was seen, it stays owed", extra={"reason": str(error)})
            self._refused = True
            self._away.set()
        finally:
            entry.telling = False
        if entry.once and entry.due_at and self._entries.get(entry.key) is entry:
            del self._entries[entry.key]


async def gather(sayings: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Say all of it at once, and wait until it is told.

    What a source has seen in one look is dated now. Said one after the other, the last would be dated when the bus took
    the one before it, and an old look would pass for a fresh one. Found by chaos: a bus that stalls made early writes.
    """
    async with asyncio.TaskGroup() as group:
        for saying in sayings:
            group.create_task(saying)
