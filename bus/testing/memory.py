"""The bus in memory, for unit tests and simulation: the semantics of JetStream without a server.

One `MemoryBus` is server and connection at once; give the same one to all who shall talk with each other. Nothing runs
by itself: no threads, no tasks, and time is what `now` and the event loop's clock say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from bus import topology
from bus.errors import Refused, Unavailable
from bus.port import Delivery, Fence, Handler, Outgoing, StreamBounds
from bus.testing.memory_parts import Hand, Log, MemoryReading, MemoryWork, Subscriber, matches
from bus.testing.memory_store import MemoryStore
from bus.topology import Bucket, Queue, Stream


class MemoryBus:
    """A `bus.port.Bus`. `now` gives the time at which a message counts as stored."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._logs = {stream.name: Log(now()) for stream in topology.STREAMS}
        self._hands: dict[str, dict[int, Hand]] = {queue.name: {} for queue in topology.QUEUES}
        self._stores = {bucket.name: MemoryStore(self._check, now) for bucket in topology.BUCKETS}
        self._answered: list[str] = []
        self._listening: list[Subscriber] = []
        self.down = False
        """Set it, and calls raise Unavailable and readers get nothing, as with a server that is away."""

    def wipe(self, *streams: Stream) -> None:
        """Delete these streams and create them again, as an operator may, or a server whose store was lost."""
        for stream in streams:
            self._logs[stream.name].wipe(self._now())
            for queue in topology.QUEUES:
                if queue.stream == stream.name:
                    self._hands[queue.name].clear()

    async def publish(self, message: Outgoing) -> int:
        """Store one message and give its sequence. Raises Refused, Unavailable."""
        log, now = self._log(message.subject), self._now()
        if message.fence and log.newest_under(message.fence.subject) != message.fence.epoch:
            raise Refused(f"{message.fence.subject} has a newer owner")
        if (seen := log.seen(message.id, now)) is not None:
            return seen
        sequence = log.append(message.subject, message.body, now, message.traceparent)
        log.ids[message.id] = (sequence, now)
        return sequence

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        """Store many. Raises Refused if any was not stored, after all were tried."""
        refused = None
        for message in messages:
            try:
                await self.publish(message)
            except Refused as error:
                refused = error
        if refused:
            raise refused

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int | None:
        """Store all or none. Raises Refused, Unavailable."""
        log, now = self._log(messages[0].subject), self._now()
        fence = messages[0].fence
        if fence and log.newest_under(fence.subject) != fence.epoch:
            raise Refused(f"{fence.subject} has a newer owner")
        if any(log.seen(message.id, now) is not None for message in messages):
            raise Refused("one of the batch is stored already")
        return [await self.publish(message._replace(fence=None)) for message in messages][-1]

    @asynccontextmanager
    async def read(self, stream: Stream, subject: str, *, after: int) -> AsyncIterator[MemoryReading]:
        """Read a subject in order. Only streams that keep what was read can be read so."""
        self._check()
        if stream.retention != "limits":
            raise ValueError(f"{stream.name} is a work queue: take your share with work()")
        yield MemoryReading(self._check, self._logs[stream.name], subject, after)

    async def last_of_each(self, stream: Stream, subject: str) -> Sequence[Delivery]:
        """Give the newest message of each subject under this one, in order."""
        self._check()
        newest = {one.subject: one for one in self._logs[stream.name].under(subject)}
        return sorted(newest.values(), key=lambda one: one.sequence)

    async def last(self, stream: Stream, subject: str) -> Delivery | None:
        """Give the newest message under this subject; None: there is none."""
        self._check()
        log = self._logs[stream.name]
        return log.messages.get(log.newest_under(subject))

    @asynccontextmanager
    async def work(self, queue: Queue, *, batch: int) -> AsyncIterator[MemoryWork]:
        """Take a share of a queue. What is in flight when it is left is given to another at once."""
        self._check()
        work = MemoryWork(self._check, self._logs[queue.stream], queue, batch, self._hands[queue.name])
        try:
            yield work
        finally:
            work.leave()

    async def extent(self, stream: Stream) -> StreamBounds:
        """First and last sequence of a stream now, and its time of creation."""
        self._check()
        log = self._logs[stream.name]
        return StreamBounds(next(iter(log.messages), log.sequence + 1), log.sequence, log.created)

    def store(self, bucket: Bucket) -> MemoryStore:
        """A key-value bucket."""
        return self._stores[bucket.name]

    async def acquire_epoch(self, subject: str, owner: str) -> Fence:
        """Write the owner's marker and give its fence. Never refused: nothing can come between look and write here."""
        return Fence(subject, self._log(subject).roll_up(subject, owner.encode(), self._now()))

    async def announce(self, subject: str) -> Callable[[], Awaitable[None]]:
        """Answer requests on this subject until the function that is given back is called."""
        self._check()
        self._answered.append(subject)

        async def stop() -> None:
            self._answered.remove(subject)

        return stop

    async def is_present(self, subject: str, timeout: timedelta) -> bool | None:  # noqa: ARG002 - an answer here takes no time
        """True: one answers. False: no process listens. None: the bus is down."""
        if self.down:
            return None
        return subject in self._answered or any(listener.subject == subject for listener in self._listening)

    async def listen(self, subject: str, handler: Handler) -> Callable[[], Awaitable[None]]:
        """Call the handler with each core message on this subject until the function that is given back is called."""
        self._check()
        listener = Subscriber(subject, handler)
        self._listening.append(listener)

        async def stop() -> None:
            if listener in self._listening:
                self._listening.remove(listener)
            listener.stopped.set()

        return stop

    async def notify(self, subject: str, body: bytes) -> None:
        """Hand the message to all who listen, before this returns. Raises Unavailable."""
        self._check()
        for listener in [listener for listener in self._listening if listener.subject == subject]:
            await listener.handler(body)

    async def request(self, subject: str, body: bytes, timeout: timedelta) -> bytes | None:  # noqa: ARG002 - an answer here takes no time
        """Hand the message to all who listen and give the first answer."""
        self._check()
        listening = [listener for listener in self._listening if listener.subject == subject]
        answers = [await listener.answer(body) for listener in listening]
        return next((answer for answer in answers if answer is not None), None)

    async def probe(self) -> datetime:
        """Time of this bus. Raises Unavailable where it was set to be down."""
        self._check()
        return self._now()

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the bus in memory was set to be down")

    def _log(self, subject: str) -> Log:
        self._check()
        for stream in topology.STREAMS:
            if any(matches(pattern, subject) for pattern in stream.subjects):
                return self._logs[stream.name]
        raise Unavailable(f"no stream takes {subject}")
