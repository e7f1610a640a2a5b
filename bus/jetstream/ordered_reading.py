"""Reading in order without acknowledgements: a push consumer that is created again from the last sequence when in
doubt.

A push consumer with idle heartbeats costs next to nothing while nothing comes and has no request to renew, so one
process can hold a reader per partition. Flow control bounds what is on its way: the server waits until what it sent was
taken. The consumer lives in the server's memory and is forgotten in any crash; all that counts is the position, kept
here.

Silence, and what is stored and does not come, is noticed by `reading_watch`, for all readings together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence, Set
from datetime import timedelta

from bus.errors import StreamRecreated, Unavailable
from bus.jetstream import reading_watch
from bus.jetstream.connection import INSTEAD, Connection
from bus.jetstream.incoming import JetStreamDelivery, ring
from bus.jetstream.lookup import last
from bus.jetstream.pushing import PushConsumer

RETRY_SECONDS = 0.2

log = logging.getLogger(__name__)


class OrderedReading:
    """A `bus.port.Reading` over one stream and filter."""

    def __init__(self, connection: Connection, stream: str, subject: str, *, after: int) -> None:
        self._connection, self.stream, self.subject = connection, stream, subject
        self._after = after
        self._created = ""  # when the stream was created: another one of the same name starts at 1 again
        self._bell = asyncio.Event()
        self._consumer: PushConsumer | None = None
        self._sound = False
        """True if a look has found that all that is stored has come."""

    async def __aenter__(self) -> OrderedReading:
        """Raises Unavailable where there is no such stream or no answer, StreamRecreated where it ends before us."""
        self._unwatch = self._connection.watch(self._bell.set)
        try:
            await self._open()
        except BaseException:  # a cancellation too: `async with` ends only what it has begun
            await self.__aexit__()
            raise
        self._connection.readings.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unwatch()
        self._connection.readings.remove(self)
        self._connection.stalled.pop(self._what, None)
        await self._drop()

    async def next(self, timeout: timedelta) -> Sequence[JetStreamDelivery]:
        """Give what has come, at most 1,000 at once. Raises StreamRecreated, at most some seconds after it was."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout.total_seconds()
        while True:
            if self._consumer and (taken := await self._consumer.take()):
                self._after = taken[-1].sequence
                return taken
            if loop.time() >= until:
                return ()
            if self._consumer is None or not self._consumer.intact():
                await self._reopen(until)
            else:
                await ring(self._bell, until=until)

    @property
    def current(self) -> bool:
        """True while the server is known to have nothing unread for us."""
        return self._consumer is not None and self._consumer.intact() and self._consumer.drained

    @property
    def unread(self) -> int:
        """Number of messages that are stored and were not given out, as its consumer last said; 0: there is none."""
        return self._consumer.unread if self._consumer is not None else 0

    @property
    def position(self) -> int:
        """Sequence of the last message that was given out."""
        return self._after

    async def newest(self) -> int:
        """Sequence of the newest message that is stored: it may not have come yet.

        Raises Unavailable, StreamRecreated.
        """
        newest = (await last(self._connection, self.stream, self.subject)).sequence
        await self._check_stream()  # afterwards: then it was this stream that answered
        return newest

    async def start_over(self) -> None:
        """Read whatever stream is there now, from its first message."""
        await self._drop()
        self._after, self._created = 0, ""

    @property
    def _what(self) -> str:
        return f"{self.stream} > {self.subject}"

    @property
    def silent_at(self) -> float | None:
        """Time at which its consumer counts as silent; None: there is none, and `next` makes another."""
        return None if self._consumer is None or not self._connection.up.is_set() else self._consumer.silent_at

    @property
    def doubtful(self) -> bool:
        """True until it is known that its consumer gives what is stored, and while more is to come by its own word."""
        return not self._sound or self._consumer is None or not self._consumer.drained

    def came(self, after: int) -> Set[int]:
        """The sequences after this one that came from the consumer of now."""
        return self._consumer.came(after) if self._consumer is not None else frozenset()

    def wake(self) -> None:
        """Let `next` look at the consumer."""
        self._bell.set()

    async def look(self) -> None:
        """Compare what came with what is stored; replace a consumer that stalls."""
        try:
            await self._look()
        except Unavailable as error:
            log.info("stream=%s subject=%s look=failed error=%s", self.stream, self.subject, error)

    async def _look(self) -> None:
        consumer, before = self._consumer, self._reached
        stored = await self._missing(before)
        self._sound = not stored and consumer is not None and consumer is self._consumer
        if stored and await self._still_missing(consumer, before) and consumer is not None:
            told = (
                f"{self._what}: nothing came although more is stored ({stored}, read up to {before}): the consumer "
                f"{consumer.name} was paused or changed from outside, and another is made ({INSTEAD})"
            )
            log.info("%s", told)
            self._connection.stalled[self._what] = told
            consumer.replace()
        elif not stored:
            self._connection.stalled.pop(self._what, None)
            if consumer is not None and self._reached == before:
                consumer.caught_up()

    async def _missing(self, reached: int) -> int:
        """Sequence of the newest message that is stored and did not come; 0: none."""
        newest = (await last(self._connection, self.stream, self.subject)).sequence
        return newest if newest > reached else 0

    async def _still_missing(self, consumer: PushConsumer | None, reached: int) -> bool:
        """True if messages are still missing after a grace. What was just stored is on its way, and what waits for us
        to take it is no fault of the server."""
        await asyncio.sleep(reading_watch.GRACE_SECONDS)
        same = consumer is not None and consumer is self._consumer and consumer.intact() and not consumer.buffer
        return same and self._reached == reached and await self._missing(reached) > 0

    @property
    def _reached(self) -> int:
        return max(self._after, self._consumer.reached if self._consumer is not None else 0)

    async def _reopen(self, until: float) -> None:
        if not self._connection.up.is_set():
            await ring(self._bell, until=until)
            return
        try:
            await self._open()
        except Unavailable as error:
            log.info("stream=%s subject=%s reopen=failed error=%s", self.stream, self.subject, error)
            await ring(self._bell, until=min(until, asyncio.get_running_loop().time() + RETRY_SECONDS))

    async def _open(self) -> None:
        await self._drop()
        consumer = PushConsumer(self._connection, self._bell)
        try:
            await consumer.start(self.stream, self.subject, self._after)
            await self._check_stream()  # afterwards: a consumer of any stream before falls silent
        except BaseException:  # a cancellation too: the server would go on sending
            await consumer.stop()
            raise
        self._consumer = consumer

    async def _drop(self) -> None:
        if self._consumer is not None:
            consumer, self._consumer, self._sound = self._consumer, None, False
            await consumer.stop()

    async def _check_stream(self) -> None:
        """Raises StreamRecreated where our position is of a stream before: its sequences began again."""
        before = self._after  # what is given out while the answer comes may be stored behind the end that it says
        info = await self._connection.api(f"STREAM.INFO.{self.stream}", {})
        if self._created not in ("", info["created"]):
            raise StreamRecreated(f"{self.stream} was created again at {info['created']}: {self._after} is not of it")
        if (end := info["state"]["last_seq"]) < before:
            raise StreamRecreated(f"{self.stream} ends at {end}, and was read up to {before}: it lost messages")
        self._created = info["created"]
