"""The parts of the bus in memory: one log under everything, and the ways to read it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache

from bus.errors import StreamRecreated, Unavailable
from bus.port import Delivery, Handler
from bus.topology import DUPLICATE_WINDOW, Queue

Availability = Callable[[], None]
"""Raises Unavailable where the bus was set to be down."""


@lru_cache(maxsize=65_536)
def matches(pattern: str, subject: str) -> bool:
    """True if a subject is under a pattern: `*` is one token, `>` at the end is one or more."""
    wanted, tokens = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted, tokens = wanted[:-1], tokens[: len(wanted) - 1] if len(tokens) >= len(wanted) else []
    return len(wanted) == len(tokens) and all(w in ("*", t) for w, t in zip(wanted, tokens, strict=True))


@dataclass(slots=True)
class Log:
    """One stream: its messages by sequence, the sequence by id, and an event for readers that wait for more."""

    created: datetime
    sequence: int = 0
    messages: dict[int, Delivery] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    ids: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, subject: str, body: bytes, now: datetime, traceparent: str | None = None) -> int:
        self.sequence += 1
        self.messages[self.sequence] = Delivery(subject, body, self.sequence, now, 0, traceparent=traceparent)
        self.newest[subject] = self.sequence
        self.wake()
        return self.sequence

    def roll_up(self, subject: str, body: bytes, now: datetime) -> int:
        """Append, and forget what this subject held before."""
        self.messages.pop(self.newest.get(subject, 0), None)
        return self.append(subject, body, now)

    def seen(self, message_id: str, now: datetime) -> int | None:
        """Give the sequence of a message that was stored with this id within the duplicate window."""
        while self.ids and now - self.ids[oldest := next(iter(self.ids))][1] >= DUPLICATE_WINDOW:
            del self.ids[oldest]
        found = self.ids.get(message_id)
        return found[0] if found is not None and now - found[1] < DUPLICATE_WINDOW else None

    def under(self, pattern: str, after: int = 0) -> list[Delivery]:
        first = max(after + 1, next(iter(self.messages), self.sequence + 1))
        numbers = (number for number in range(first, self.sequence + 1) if number in self.messages)
        found = [self.messages[number] for number in numbers if matches(pattern, self.messages[number].subject)]
        return [replace(one, pending=len(found) - place) for place, one in enumerate(found, start=1)]

    def newest_under(self, pattern: str) -> int:
        """Sequence of the newest message under a pattern; 0: there is none."""
        if "*" not in pattern and ">" not in pattern:
            return self.newest.get(pattern, 0)
        return max((sequence for subject, sequence in self.newest.items() if matches(pattern, subject)), default=0)

    def wipe(self, now: datetime) -> None:
        """Be another stream of the same name: empty, counting from 1, created at another moment."""
        self.created = max(now, self.created + timedelta(microseconds=1))
        self.sequence, self.messages, self.newest, self.ids = 0, {}, {}, {}
        self.wake()

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def changes(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self.changed.wait()
        except TimeoutError:
            return


class MemoryReading:
    """A `bus.port.Reading`."""

    def __init__(self, check: Availability, log: Log, subject: str, after: int) -> None:
        """Raises StreamRecreated where the stream ends before `after`."""
        self._check, self._log, self._subject, self._after = check, log, subject, after
        self._created = log.created
        self._check_stream()

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Give what has come; empty after `timeout`. Raises StreamRecreated."""
        until = _now() + timeout.total_seconds()
        while not (found := self._unread()) and _now() < until:
            await self._log.changes(until)
        self._after = found[-1].sequence if found else self._after
        return found

    @property
    def current(self) -> bool:
        """True while nothing is unread, and the bus is up."""
        try:
            self._check()
            return not self._unread()
        except (Unavailable, StreamRecreated):
            return False

    @property
    def unread(self) -> int:
        """Number of messages that were not given out."""
        return len(self._log.under(self._subject, self._after))

    @property
    def position(self) -> int:
        """Sequence of the last message that was given out."""
        return self._after

    async def newest(self) -> int:
        """Raises Unavailable where the bus was set to be down, StreamRecreated."""
        self._check()
        self._check_stream()
        return max((one.sequence for one in self._log.under(self._subject, self._after)), default=self._after)

    def _unread(self) -> list[Delivery]:
        try:
            self._check()
        except Unavailable:
            return []  # a reader outlasts a server that is away, and goes on when it is back
        self._check_stream()
        return self._log.under(self._subject, self._after)

    def _check_stream(self) -> None:
        if self._log.created != self._created or self._log.sequence < self._after:
            raise StreamRecreated(
                f"the stream ends at {self._log.sequence}, and is not the one read up to {self._after}"
            )


@dataclass(slots=True, eq=False)
class Subscriber:
    """A handler for the core messages of a subject."""

    subject: str
    handler: Handler
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, body: bytes) -> bytes | None:
        """Give the handler's answer; None: it has none, or was stopped before it had one."""
        answer = asyncio.ensure_future(self.handler(body))
        stopped = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({answer, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            stopped.cancel()


@dataclass(slots=True)
class Hand:
    """Owner of a queue's message, and its deadline by the loop's clock."""

    owner: object
    due: float
    given: int


class MemoryWork:
    """A `bus.port.Work`. `hands` is shared by all that work on the queue."""

    def __init__(self, check: Availability, log: Log, queue: Queue, batch: int, hands: dict[int, Hand]) -> None:
        self._check, self._log, self._queue, self._batch, self._hands = check, log, queue, batch, hands
        self.killed = False
        """Set it before the work is left, and what is in flight comes again after ack_wait, as after a crash."""

    def leave(self) -> None:
        """Give back what is in flight."""
        due = _now() + (self._queue.ack_wait.total_seconds() if self.killed else 0.0)
        for hand in self._hands.values():
            if hand.owner is self:
                hand.owner, hand.due = None, due
        self._log.wake()

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Give what has come, and not again until ack_wait is over; empty after `timeout`."""
        until = _now() + timeout.total_seconds()
        while not (taken := self._take(_now())) and _now() < until:
            due = [hand.due for hand in self._hands.values() if hand.due > _now()]
            await self._log.changes(min([until, *due]))
        return taken

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """These need not come again."""
        for one in deliveries:
            if self._mine(one):
                del self._hands[one.sequence], self._log.messages[one.sequence]
        self._log.wake()

    async def nak(self, delivery: Delivery, delay: timedelta) -> None:
        """Nak: give this again, to any reader of the queue, after `delay`."""
        if hand := self._mine(delivery):
            hand.owner, hand.due = None, _now() + delay.total_seconds()
            self._log.wake()

    async def in_progress(self, delivery: Delivery) -> None:
        """The ack_wait starts again."""
        if hand := self._mine(delivery):
            hand.due = self._due(_now())

    def _due(self, now: float) -> float:
        """Time until which no other gets what is taken now: no end where it is extended until the work is left."""
        return math.inf if self._queue.in_progress else now + self._queue.ack_wait.total_seconds()

    def _mine(self, one: Delivery) -> Hand | None:
        hand = self._hands.get(one.sequence)
        mine = hand and hand.owner is self and str(hand.given) == one.token and _now() < hand.due
        return hand if mine else None

    def _take(self, now: float) -> list[Delivery]:
        self._check()
        room = self._batch - sum(hand.owner is self and hand.due > now for hand in self._hands.values())
        taken: list[Delivery] = []
        for one in self._log.under(self._queue.filter):
            hand = self._hands.get(one.sequence) or Hand(None, now, 0)
            if len(taken) < room and hand.due <= now and hand.given != self._queue.max_deliver:
                hand = Hand(self, self._due(now), hand.given + 1)
                self._hands[one.sequence] = hand
                taken.append(replace(one, redelivered=hand.given > 1, token=str(hand.given)))
        return taken


def _now() -> float:
    return asyncio.get_running_loop().time()
