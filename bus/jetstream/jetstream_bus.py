"""The bus on NATS JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime, timedelta

from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from bus import topology
from bus.errors import Refused, Unavailable
from bus.jetstream.connection import ApiError, Connection, Credentials, connect
from bus.jetstream.incoming import TRACEPARENT
from bus.jetstream.keyvalue import KeyValueStore
from bus.jetstream.lookup import last
from bus.jetstream.newest import last_of_each
from bus.jetstream.ordered_reading import OrderedReading
from bus.jetstream.pending_publish import EXPECTED, FENCED, PendingPublish
from bus.jetstream.publishing import Publisher
from bus.jetstream.pulling import PullWork
from bus.jetstream.scanning import ScannedReading
from bus.port import Delivery, Fence, Handler, LogReader, Outgoing, Store, StreamBounds, WorkQueue
from bus.topology import Bucket, Queue, Stream

TIMEOUT = timedelta(seconds=2)
PATIENCE = timedelta(seconds=10)  # a cluster of three took up to 6.5 s to choose a leader after a kill (measured)
UNSTORED_SECONDS = 30.0  # longer than `patience`: the publisher tries again meanwhile
NOT_STORING = "nats-server answers and does not store"
REMEDY = (
    "its disk is full, or was: see its log and /healthz, free space, then restart nats-server; "
    "the reactor goes on by itself"
)
JETSTREAM_OFF = (10008, 10039, 10076)  # temporarily unavailable, not enabled for the account, not enabled
NO_ANSWER = b""  # an empty body says that there is no answer: no answer of ours is empty
PROBE_KEY = "probe"  # under no partition: only the probe reads it


class JetStreamBus:
    """A `bus.port.Bus`. Made by `connect`."""

    def __init__(self, connection: Connection, *, patience: timedelta) -> None:
        self.connection = connection
        self._publisher = Publisher(connection, patience=patience)
        self._prompt = Publisher(connection, patience=timedelta(seconds=connection.timeout))
        self._asking: dict[str, asyncio.Lock] = {}
        self._extents: dict[str, tuple[float, StreamBounds | Unavailable]] = {}
        """Result of the latest question about the extent of each stream, and its time (event loop's clock)."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str | Sequence[str],
        *,
        name: str,
        credentials: Credentials | None = None,
        timeout: timedelta = TIMEOUT,
        patience: timedelta = PATIENCE,
        read_only: bool = False,
    ) -> AsyncIterator[JetStreamBus]:
        """Connect to one server, or to any of several.

        `name` is shown to the operator of the server. `timeout` is how long one request may take, `patience` how long
        a message is published again before Unavailable is raised. Raises Unavailable where no server is there within
        `patience`, WrongServer where it is too old or lacks JetStream.
        `read_only`: make no consumers, and write nothing but what is published.
        """
        async with connect(
            url, name=name, credentials=credentials or Credentials(), timeout=timeout, patience=patience
        ) as connection:
            connection.read_only = read_only
            bus = cls(connection, patience=patience)
            await bus._publisher.start()
            await bus._prompt.start()
            yield bus

    @property
    def user(self) -> str:
        """Our user for the server, as our inboxes name it."""
        return self.connection.user

    async def publish(self, message: Outgoing) -> int:
        """Store one message and give its sequence. Raises Refused, Unavailable, Malformed."""
        [result] = await self._publisher.send([_post(message)])
        if isinstance(result, Refused):
            raise result
        return result

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        """Store many. Raises Refused or Unavailable if any was not stored, Malformed where one cannot be."""
        for result in await self._publisher.send_together([_post(message) for message in messages]):
            if isinstance(result, Refused):
                raise result

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int | None:
        """Store all of these or none. Raises Refused, Unavailable, Malformed."""
        result = await self._publisher.send_batch([_post(message) for message in messages])
        if isinstance(result, Refused):
            raise result
        return result

    def read(self, stream: Stream, subject: str, *, after: int) -> AbstractAsyncContextManager[LogReader]:
        """Read a subject in order. Only streams that keep what was read can be read so."""
        if stream.retention != "limits":
            raise ValueError(f"{stream.name} is a work queue: take your share with work()")
        if self.connection.read_only:
            return ScannedReading(self.connection, stream.name, subject, after=after)
        return OrderedReading(self.connection, stream.name, subject, after=after)

    async def last_of_each(self, stream: Stream, subject: str) -> Sequence[Delivery]:
        """Give the newest message of each subject under this one, in order. Raises Unavailable."""
        return await last_of_each(self.connection, stream.name, subject)

    async def last(self, stream: Stream, subject: str) -> Delivery | None:
        """Give the newest message under this subject; None: there is none. Raises Unavailable."""
        newest = await last(self.connection, stream.name, subject)
        if not newest.sequence:
            return None
        return Delivery(newest.subject, newest.body, newest.sequence, newest.stored_at, 0)

    def work(self, queue: Queue, *, batch: int) -> AbstractAsyncContextManager[WorkQueue]:
        """Take a share of a queue."""
        return PullWork(self.connection, queue, batch=batch)

    async def extent(self, stream: Stream) -> StreamBounds:
        """Ask the stream's leader from where to where it reaches now. Raises Unavailable.

        Callers that come while an answer is awaited share the next question, which is asked after all of them asked.
        """
        loop = asyncio.get_running_loop()
        called_at = loop.time()
        async with self._asking.setdefault(stream.name, asyncio.Lock()):
            asked_at, answer = self._extents.get(stream.name, (called_at, None))
            if answer is None or asked_at <= called_at:
                asked_at = loop.time()
                try:
                    answer = await self._extent(stream)
                except Unavailable as error:
                    answer = error  # for all who waited: each asking again would wait as long, one after the other
                self._extents[stream.name] = asked_at, answer
        if isinstance(answer, Unavailable):
            raise Unavailable(str(answer)) from answer
        return answer

    async def _extent(self, stream: Stream) -> StreamBounds:
        info = await self.connection.api(f"STREAM.INFO.{stream.name}", {})
        state, created = info["state"], datetime.fromisoformat(info["created"])
        return StreamBounds(
            state["first_seq"] if state["messages"] else state["last_seq"] + 1, state["last_seq"], created
        )

    def store(self, bucket: Bucket) -> Store:
        """A key-value bucket."""
        return KeyValueStore(self.connection, self._publisher, bucket)

    async def acquire_epoch(self, subject: str, owner: str) -> Fence:
        """Write the owner's marker if no other one was written meanwhile. Raises Refused, Unavailable."""
        marker = await last(self.connection, topology.ACTIONS.name, subject)
        # The marker before is rolled up: one per partition stays, however often owners change.
        headers = {"Nats-Msg-Id": self._publisher.new_id(), EXPECTED: str(marker.sequence), "Nats-Rollup": "sub"}
        post = PendingPublish(subject, owner.encode(), headers)
        [result] = await self._publisher.send([post])
        if isinstance(result, Refused):
            result = (await last(self.connection, topology.ACTIONS.name, subject)).settle(post, result)
        if isinstance(result, Refused):
            raise Refused(f"{subject} was taken by another meanwhile: {result}")
        return Fence(subject, result)

    async def announce(self, subject: str) -> Callable[[], Awaitable[None]]:
        """Answer requests until the function that is given back is called."""

        async def respond(request: Msg) -> None:
            await request.respond(b"")

        try:
            subscription = await self.connection.client.subscribe(subject, cb=respond)
            await self._flush()  # from now on, for every process that asks
        except (Error, TimeoutError) as error:
            raise Unavailable(f"not connected: {error}") from error

        async def stop() -> None:
            with suppress(Error):  # the connection has ended, and the answering with it
                await subscription.unsubscribe()

        return stop

    async def is_present(self, subject: str, timeout: timedelta) -> bool | None:
        """True: one answered. False: surely no process listens. None: no answer in time."""
        try:
            await self.connection.client.request(subject, timeout=timeout.total_seconds())
        except NoRespondersError:
            return False
        except (NatsTimeoutError, TimeoutError):
            return None
        except Error as error:
            raise Unavailable(f"not connected: {error}") from error
        return True

    async def _flush(self) -> None:
        """Wait until the server has taken what was sent. Raises Error, TimeoutError.

        `asyncio.wait_for` of Python 3.11, which nats-py waits with, may lose a cancellation that comes in the same
        instant as the answer. A task group cancels its tasks once only: one that lost it would never end.
        """
        await self.connection.client.flush()
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def listen(self, subject: str, handler: Handler) -> Callable[[], Awaitable[None]]:
        """Call the handler with each core message until the function that is given back is called."""
        running: set[asyncio.Task[None]] = set()

        async def handle(message: Msg) -> None:
            answer: bytes | None = None
            try:
                answer = await handler(message.data)
            finally:  # also when it is stopped: an executor then asks the next owner
                if message.reply:
                    with suppress(Error):  # the connection has ended, and the question is put again
                        await message.respond(answer or NO_ANSWER)

        async def start(message: Msg) -> None:
            # A subscription's callback is awaited: one handler that takes long would hold up those behind it.
            task = asyncio.create_task(handle(message))
            running.add(task)
            task.add_done_callback(running.discard)

        try:
            subscription = await self.connection.client.subscribe(subject, cb=start)
            try:
                await self._flush()
            except BaseException:  # a cancellation too: the caller has not got `stop` yet
                await subscription.unsubscribe()
                raise
        except (Error, TimeoutError) as error:
            raise Unavailable(f"not connected: {error}") from error

        async def stop() -> None:
            with suppress(Error):
                await subscription.unsubscribe()
            for task in [*running]:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

        return stop

    async def notify(self, subject: str, body: bytes) -> None:
        """Send a core message. Raises Unavailable."""
        try:
            await self.connection.client.publish(subject, body)
        except Error as error:
            raise Unavailable(f"not connected: {error}") from error

    async def request(self, subject: str, body: bytes, timeout: timedelta) -> bytes | None:
        """Send a core message and give the answer; None: no process listens, none has one, or none in time."""
        try:
            answer = await self.connection.client.request(subject, body, timeout=timeout.total_seconds())
        except (NoRespondersError, NatsTimeoutError, TimeoutError):
            return None
        except Error as error:
            raise Unavailable(f"not connected: {error}") from error
        return answer.data or None

    async def ailment(self) -> str:
        """Give why nothing is stored, and what to do, where the server answers and does not store; else empty."""
        try:
            await self.connection.api("INFO", {})
        except ApiError as error:
            return f"{NOT_STORING}: {error}; {REMEDY}" if error.code in JETSTREAM_OFF else ""
        except Unavailable as error:
            # The connection is up, and who answers for JetStream is gone.
            off = isinstance(error.__cause__, NoRespondersError)
            if not off:
                self.connection.unstored.clear()  # who answers nothing says nothing of a disk
            return f"{NOT_STORING}: JetStream is off, or its cluster has no leader; {REMEDY}" if off else ""
        recent = asyncio.get_running_loop().time() - UNSTORED_SECONDS
        where = sorted(root for root, at in self.connection.unstored.items() if at >= recent)
        return f"{NOT_STORING} ({', '.join(where)}); {REMEDY}" if where else ""

    async def probe(self) -> datetime:
        """Write one value, read it back, and give when the server stored it.

        Without patience: the answer is wanted now. A bus that is only read is asked for its time. Raises Unavailable.
        """
        if self.connection.read_only:
            info = await self.connection.api(f"STREAM.INFO.KV_{topology.GROUPS.name}", {})
            return datetime.fromisoformat(info["ts"])
        store = KeyValueStore(self.connection, self._prompt, topology.GROUPS)
        await store.put(PROBE_KEY, b"", revision=None)
        return await store.written_at(PROBE_KEY)


def _post(message: Outgoing) -> PendingPublish:
    headers = {"Nats-Msg-Id": message.id}
    if message.fence:
        headers[EXPECTED] = str(message.fence.epoch)
        headers[FENCED] = message.fence.subject
    if message.traceparent:
        headers[TRACEPARENT] = message.traceparent
    return PendingPublish(message.subject, message.body, headers)
