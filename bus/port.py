"""Port to the bus. JetStream implements it in production, memory in tests; both pass the same contract tests.

The cheap ways of nats-py are behind this port: `fetch` costs about 100 µs of CPU a message, overlapping raw pulls with
batched acknowledgements 5 to 18 µs (measured).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from bus.topology import Bucket, Queue, Stream


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to publish: the newest message under `subject`, in the same stream, must have this sequence.

    For actions that is `own.<partition>`; for a chain of records, the record before.
    """

    subject: str
    epoch: int


class Outgoing(NamedTuple):
    """One message to be stored. A tuple: a fact has 64 of them, and one costs a third of what a dataclass does."""

    subject: str
    body: bytes
    id: str
    """Deterministic. Stored once however often it is published within topology.DUPLICATE_WINDOW."""
    fence: Fence | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One stored message as it comes out."""

    subject: str
    body: bytes
    sequence: int
    """Sequence in its stream: grows, never repeats."""
    stored_at: datetime
    """Time of storing, by the server's clock."""
    pending: int
    """Number of messages of this reading that were still unread when the server sent this one."""
    redelivered: bool = False
    traceparent: str | None = None
    token: str = field(default="", repr=False)
    """Token to acknowledge it: the bus's own business."""


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """Bounds of a stream at a moment. A work queue keeps what is not acknowledged."""

    first: int
    """Sequence of the oldest message; one more than `last` where there is none."""
    last: int
    """Sequence of the newest message that was ever stored."""
    created: datetime
    """Time at which the stream was created. Another time: it is another stream of the same name, and counts from 1
    again."""


@dataclass(frozen=True, slots=True)
class KeyValueEntry:
    """A key's value."""

    key: str
    value: bytes
    revision: int
    """Grows with every write to the bucket, over deletion too."""
    written_at: datetime | None = field(default=None, compare=False)
    """Time of writing, by the server's clock; None: not known."""


class LogReader(Protocol):
    """One reader's ordered view of a subject, without acknowledgements: the reader keeps its own position.

    A position is of one stream. Once that was recreated, or ends before the position, `next` and `newest` raise
    StreamRecreated, now and ever after: to read on, open another reader.
    """

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Give what has come, at least one, in order; empty after `timeout`. Gaps after a reconnect are read again.

        Raises StreamRecreated.
        """
        ...

    @property
    def current(self) -> bool:
        """True while, for all we heard, nothing is unread: heard from the server lately, nothing pending."""
        ...

    @property
    def unread(self) -> int:
        """Number of messages that are stored and were not given out, for all we know."""
        ...

    @property
    def position(self) -> int:
        """Sequence of the last message that was given out."""
        ...

    async def newest(self) -> int:
        """Ask the server for the sequence of the newest message under this subject; 0: none.

        Raises Unavailable, StreamRecreated.
        """
        ...


class WorkQueue(Protocol):
    """One process's share of a queue."""

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Give what has come, at least one; empty after `timeout`."""
        ...

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge: these are not delivered again. Flow control only; the durable record is the outcome."""
        ...

    async def nak(self, delivery: Delivery, delay: timedelta) -> None:
        """Redeliver this to any consumer of the queue after at least `delay`."""
        ...

    async def in_progress(self, delivery: Delivery) -> None:
        """Report progress: the ack_wait of this delivery starts again."""
        ...


class Store(Protocol):
    """A key-value bucket. Keys are made by bus.subjects.key."""

    async def get(self, key: str) -> KeyValueEntry:
        """Raises KeyNotFound, Unavailable."""
        ...

    async def put(self, key: str, value: bytes, *, revision: int | None) -> int:
        """Write if the key is at `revision` (0: it must not exist; None: at any revision).

        Gives the new revision. Raises Refused where it is at another one, Unavailable.
        """
        ...

    async def put_all(self, writes: Sequence[tuple[str, bytes, int]]) -> Sequence[int | None]:
        """Write many (key, value, revision) at once, pipelined: each new revision, None where it was refused."""
        ...

    async def delete(self, key: str, *, revision: int | None) -> None:
        """Remove. No error where there is none. Raises Refused, Unavailable."""
        ...

    async def entries(self, pattern: str) -> Sequence[KeyValueEntry]:
        """All entries under a pattern (`17.*`, `>`), read in one go."""
        ...

    async def scan(self, pattern: str) -> Sequence[KeyValueEntry]:
        """The same by one request for each, for few: any user who may read the bucket may. Raises Unavailable."""
        ...

    async def created_at(self) -> datetime:
        """Time at which this bucket was created. Another time: it is another one of the same name, and its revisions
        count from 1 again. Raises Unavailable."""
        ...

    def watch(self, pattern: str) -> AbstractAsyncContextManager[AsyncIterator[KeyValueEntry | str]]:
        """All entries under a pattern, then each change as it comes; a removed key is given as its bare name."""
        ...


Handler = Callable[[bytes], Awaitable[bytes | None]]
"""Takes the body of a core message and gives the answer; None: no answer."""


class Bus(Protocol):
    """The bus. Every call raises Unavailable where the server does not answer in time."""

    async def publish(self, message: Outgoing) -> int:
        """Store one message and give its sequence. Raises Refused where another owner has fenced it off."""
        ...

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        """Store many, pipelined, in order per subject. Raises Refused or Unavailable if any was not stored."""
        ...

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int | None:
        """Store all of these or none, in their order, in one stream: gives the sequence of the last.

        Only the first may have a fence. None: the server takes no batches here, and nothing is stored. Raises Refused
        where the fence does not hold or one of them is stored already, Unavailable.
        """
        ...

    def read(self, stream: Stream, subject: str, *, after: int) -> AbstractAsyncContextManager[LogReader]:
        """Read a subject from the message after sequence `after` on; 0: from the first that is kept.

        Entering it raises Unavailable, and StreamRecreated where the stream ends before `after`.
        """
        ...

    async def last_of_each(self, stream: Stream, subject: str) -> Sequence[Delivery]:
        """Give the newest message of each subject under this one, in order. Raises Unavailable."""
        ...

    async def last(self, stream: Stream, subject: str) -> Delivery | None:
        """Ask for the newest message under this subject; None: there is none. Raises Unavailable."""
        ...

    def work(self, queue: Queue, *, batch: int) -> AbstractAsyncContextManager[WorkQueue]:
        """Take a share of a queue, at most `batch` messages in flight at once."""
        ...

    async def extent(self, stream: Stream) -> StreamBounds:
        """Ask the server from where to where a stream reaches now, and since when there is this stream."""
        ...

    def store(self, bucket: Bucket) -> Store:
        """A key-value bucket."""
        ...

    async def acquire_epoch(self, subject: str, owner: str) -> Fence:
        """Write the owner's marker by compare-and-set and give its fence. Raises Refused where another was faster."""
        ...

    async def announce(self, subject: str) -> Callable[[], Awaitable[None]]:
        """Answer `is_present` on this subject until the returned function is called."""
        ...

    async def is_present(self, subject: str, timeout: timedelta) -> bool | None:
        """True: a process that announced this subject answered. False: none listens. None: no answer in time."""
        ...

    async def listen(self, subject: str, handler: Handler) -> Callable[[], Awaitable[None]]:
        """Call the handler with each core message on this subject until the function that is given back is called.

        What the handler returns is sent to the caller of `request`; None: that there is no answer, and so it is for
        those that wait when it is stopped. Handlers run at the same time.
        """
        ...

    async def notify(self, subject: str, body: bytes) -> None:
        """Send a core message: it is stored nowhere, and lost where no process listens. Raises Unavailable."""
        ...

    async def request(self, subject: str, body: bytes, timeout: timedelta) -> bytes | None:
        """Send a core message and give the answer; None: no process listens, they have none, or there is none in time.

        Raises Unavailable.
        """
        ...

    async def probe(self) -> datetime:
        """Write and read one value, and give when it was stored, by the server's clock.

        A connection that looks healthy may sit on a full disk. Raises Unavailable.
        """
        ...
