"""A `bus.port.Bus` as one process has it: the shared server behind the process's own link."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from datetime import datetime, timedelta

from bus.errors import Unavailable
from bus.port import Delivery, Fence, Handler, Outgoing, StreamBounds
from bus.topology import Bucket, Queue, Stream
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.readers import SimReading, SimWork
from tests.simulation.fleet.server import Listener, Reply, Server
from tests.simulation.fleet.store import SimStore


class SimBus:
    """One process's connection."""

    def __init__(self, server: Server, link: Link, listener: Listener) -> None:
        self._server, self._link, self._listener = server, link, listener

    async def publish(self, message: Outgoing) -> int:
        """Raises Refused, Unavailable."""
        return await self._link.call(f"publish {message.subject} {message.id}", lambda: self._server.publish(message))

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        """Pipelined: a trouble on the way may let the first ones through and the rest not."""
        what = f"publish {' '.join(message.id for message in messages)}"
        stored = self._link.some(len(messages))

        async def publish() -> None:
            await self._server.publish_all(messages[:stored])
            if stored < len(messages):
                raise Unavailable("the connection broke in the middle")

        await self._link.call(what, publish)

    async def publish_batch(self, messages: Sequence[Outgoing]) -> int | None:
        """All or none. Raises Refused, and Unavailable, also where they are stored."""
        what = f"publish together {' '.join(message.id for message in messages)}"
        return await self._link.call(what, lambda: self._server.publish_batch(messages))

    @asynccontextmanager
    async def read(self, stream: Stream, subject: str, *, after: int) -> AsyncIterator[SimReading]:
        """Raises Unavailable where the server cannot be reached now."""
        await self._link.call(f"read {subject} after {after}", self._server.probe)
        async with self._server.read(stream, subject, after=after) as reading:
            yield SimReading(reading, self._link)

    async def last_of_each(self, stream: Stream, subject: str) -> Sequence[Delivery]:
        """Raises Unavailable."""
        return await self._link.call(f"last of {subject}", lambda: self._server.last_of_each(stream, subject))

    async def last(self, stream: Stream, subject: str) -> Delivery | None:
        """Raises Unavailable."""
        return await self._link.call(f"newest of {subject}", lambda: self._server.last(stream, subject))

    @asynccontextmanager
    async def work(self, queue: Queue, *, batch: int) -> AsyncIterator[SimWork]:
        """Raises Unavailable where the server cannot be reached now."""
        await self._link.call(f"work {queue.name}", self._server.probe)
        async with self._server.work(queue, batch=batch) as work:
            try:
                yield SimWork(work, self._server, self._link)
            finally:
                work.killed = not self._link.up  # the server hears no farewell

    async def extent(self, stream: Stream) -> StreamBounds:
        """Raises Unavailable."""
        return await self._link.call(f"extent {stream.name}", lambda: self._server.extent(stream))

    def on_facts_lost(self, wake: Callable[[], None]) -> None:
        """Call `wake` each time the server has come back with an empty store (reactor/process/bus_repair.py)."""
        self._server.wakers.append(wake)

    def store(self, bucket: Bucket) -> SimStore:
        """A key-value bucket."""
        return SimStore(self._server.store(bucket), self._link)

    async def acquire_epoch(self, subject: str, owner: str) -> Fence:
        """Raises Unavailable, also where the epoch has moved and the answer was lost."""
        return await self._link.call(f"epoch {subject}", lambda: self._server.acquire_epoch(subject, owner))

    async def announce(self, subject: str) -> Callable[[], Awaitable[None]]:
        """Answer until told to stop; a process that is killed answers no more."""
        listeners = self._server.listeners.setdefault(subject, [])

        async def start() -> None:
            listeners.append(self._listener)

        async def stop() -> None:
            if self._listener in listeners:
                listeners.remove(self._listener)

        await self._link.call(f"answer {subject}", start)
        return stop

    async def is_present(self, subject: str, timeout: timedelta) -> bool | None:
        """None where there is no answer in time, for whatever reason."""

        async def ask() -> bool | None:
            return None if self._server.down else self._server.listening(subject)

        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                answer = await self._link.call(f"ask {subject}", ask)
        except (TimeoutError, Unavailable):
            return None
        if answer is None:
            await asyncio.sleep(max(began + timeout.total_seconds() - asyncio.get_running_loop().time(), 0))
        return answer

    async def listen(self, subject: str, handler: Handler) -> Callable[[], Awaitable[None]]:
        """A process that is frozen handles what came meanwhile when it goes on; one that is cut off never gets it."""
        loop, context = asyncio.get_running_loop(), copy_context()

        async def handle(body: bytes, reply: Reply | None) -> None:
            answer: bytes | None = None
            try:
                answer = await handler(body)
            finally:  # also when it is stopped, as the real one
                if reply is not None and self._link.up:
                    loop.call_later(self._link.latency(), reply, answer)

        def start(body: bytes, reply: Reply | None) -> None:
            if self._link.up:
                handling = loop.create_task(handle(body, reply))
                running.add(handling)
                handling.add_done_callback(running.discard)

        def receive(body: bytes, reply: Reply | None) -> None:
            if self._link.up:
                loop.call_later(self._link.latency(), start, body, reply, context=context.copy())

        running: set[asyncio.Task[None]] = set()
        subscribers = self._server.subscribers.setdefault(subject, [])

        async def subscribe() -> None:
            subscribers.append(receive)

        async def stop() -> None:
            if receive in subscribers:
                subscribers.remove(receive)
            for handling in [*running]:
                handling.cancel()

        await self._link.call(f"listen {subject}", subscribe)
        return stop

    async def notify(self, subject: str, body: bytes) -> None:
        """Raises Unavailable where the connection is cut."""
        if not self._link.up:
            raise Unavailable("cut off")
        self._link.say(f"notify {subject}", lambda: self._server.send(subject, body), asked_again=True)

    async def request(self, subject: str, body: bytes, timeout: timedelta) -> bytes | None:
        """None where there is no answer in time, for whatever reason."""
        answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

        def reply(given: bytes | None) -> None:
            if not answer.done():
                answer.set_result(given)

        self._link.say(f"request {subject}", lambda: self._server.send(subject, body, reply), asked_again=True)
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                return await answer
        except TimeoutError:
            return None

    async def probe(self) -> datetime:
        """Raises Unavailable."""
        return await self._link.call("probe", self._server.probe)
