"""A share of a work queue: pull requests that overlap, so that the next messages are on their way while these are done.

A request lasts for some seconds and is renewed when half of it is used up. What is in flight counts against `batch`
until it is done, or until the server has given it to another.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from bus.errors import Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import foreign, ring, status, stored
from bus.jetstream.wire import OutgoingMessage
from bus.port import Delivery
from bus.topology import Queue

EXPIRES_SECONDS = 5  # a process that is frozen is sent messages for no longer
HEARTBEAT_SECONDS = 2
SILENCE_SECONDS = 5.0  # two heartbeats missed: the server forgot our request, in a crash for instance
PAUSE_SECONDS = 0.2  # after the server said that it cannot serve this consumer now
DRAIN_SECONDS = 1.0  # for one round trip at the end

log = logging.getLogger(__name__)


class PullWork:
    """A `bus.port.Work` on one durable consumer."""

    def __init__(self, connection: Connection, queue: Queue, *, batch: int) -> None:
        self._connection, self._queue, self._batch = connection, queue, batch
        self._bell = asyncio.Event()
        self._inbox: Subscription | None = None
        self._losses = connection.losses
        self._asked = 0  # messages that the server may still send us
        self._buffer: list[Delivery] = []
        self._hands: dict[str, float] = {}  # token -> when the server gives it to another
        self._silent_at = self._not_before = 0.0
        self._extending: asyncio.Task[None] | None = None
        self._holding = asyncio.Event()  # set while something is in our hands

    async def __aenter__(self) -> PullWork:
        """Raises Unavailable where the queue does not exist, or the server does not answer."""
        await self._connection.api(f"CONSUMER.INFO.{self._queue.stream}.{self._queue.name}", {})
        self._unwatch = self._connection.watch(self._bell.set)
        if (every := self._queue.in_progress) is not None:
            self._extending = asyncio.create_task(self._extend_all(every.total_seconds()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give back all that is in flight, given out or not: the next process gets it at once, not after ack_wait."""
        self._unwatch()
        if self._extending is not None:
            self._extending.cancel()
        await self._drain()
        with suppress(Unavailable):  # then it comes again after ack_wait, as after any crash
            await self._say([*self._hands], b"-NAK")
        self._hands.clear()

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Give what has come, at least one; empty after `timeout`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout.total_seconds()
        while True:
            await self._ask(loop.time())
            if self._buffer:
                taken, self._buffer = self._buffer, []
                return taken
            if loop.time() >= until:
                return ()
            # A request that was refused is made again when its pause is over: nothing else would wake us.
            again = self._not_before if loop.time() < self._not_before else self._silent_at
            await ring(self._bell, until=min(until, again))

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge, except what the server has given to another meanwhile: our late word would end his work too."""
        await self._say([one.token for one in deliveries if self._release(one)], b"")

    async def nak(self, delivery: Delivery, delay: timedelta) -> None:
        """Nak: the server gives this again, to any reader of the queue, after at least `delay`."""
        if self._release(delivery):
            nanoseconds = delay // timedelta(microseconds=1) * 1000
            await self._say([delivery.token], b'-NAK {"delay": %d}' % nanoseconds)

    async def in_progress(self, delivery: Delivery) -> None:
        """Still working on it. Too late is too late: then it belongs to another."""
        if self._release(delivery):
            self._hands[delivery.token] = self._due()
            await self._say([delivery.token], b"+WPI")

    async def _ask(self, now: float) -> None:
        """Keep a request standing, if there is room in our hands."""
        if not self._connection.up.is_set():
            self._silent_at = now + SILENCE_SECONDS  # the bell rings when it is back
            return
        if now >= self._silent_at or self._losses != self._connection.losses:
            await self._hang_up()
        self._forget_overdue(now)
        room = self._batch - self._asked - len(self._hands)
        if room <= 0 or now < self._not_before or (self._asked and room < self._batch / 2):
            return
        try:
            await self._request(room)
        except Error as error:
            log.info("queue=%s pull=failed error=%s", self._queue.name, error)
            self._not_before = now + PAUSE_SECONDS

    async def _request(self, room: int) -> None:
        client = self._connection.client
        if self._inbox is None:
            # A new inbox each time: requests of before, if the server still knows them, find no subscriber.
            self._losses = self._connection.losses
            self._inbox = await client.subscribe_directly(client.new_inbox(), self._on_message)
        request = {"batch": room, "expires": EXPIRES_SECONDS * 10**9, "idle_heartbeat": HEARTBEAT_SECONDS * 10**9}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._queue.stream}.{self._queue.name}"
        await client.publish(subject, json.dumps(request).encode(), self._inbox.subject)
        self._asked += room
        self._note_answer()

    async def _hang_up(self) -> None:
        inbox, self._inbox, self._asked = self._inbox, None, 0
        if inbox is not None:
            with suppress(Error):  # the connection has ended, and the subscription with it
                await inbox.unsubscribe()
        self._note_answer()

    async def _drain(self) -> None:
        """Ask for no more, and take what the server had sent by then: it counts as in our hands."""
        inbox = self._inbox
        if inbox is not None and self._connection.up.is_set():
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await inbox.drain()  # type: ignore[no-untyped-call]  # nats-py has none there
                    self._inbox = None
        await self._hang_up()

    async def _extend_all(self, every: float) -> None:
        """Say again and again that we still work on what we hold, until cancelled."""
        while True:
            await self._holding.wait()
            await asyncio.sleep(every)
            if not self._hands:
                self._holding.clear()
            if not self._connection.up.is_set():
                continue  # the server cannot hear us: it gives the messages to another
            now = asyncio.get_running_loop().time()
            self._forget_overdue(now)
            young = now + self._queue.ack_wait.total_seconds() - every
            old = [token for token, due in self._hands.items() if due <= young]
            self._hands |= dict.fromkeys(old, self._due())
            try:
                await self._say(old, b"+WPI")
            except Unavailable as error:
                log.info("queue=%s extend=failed error=%s", self._queue.name, error)

    def _on_message(self, message: Msg) -> None:
        self._note_answer()
        if code := status(message):
            self._on_status(code, message.headers or {})
        else:
            if foreign(message, self._queue.stream, self._queue.name):
                self._connection.on_foreign(self._queue.stream, message.subject)
                return
            one = stored(message)
            self._asked = max(0, self._asked - 1)
            self._hands[one.token] = self._due()
            self._holding.set()
            self._buffer.append(one)
        self._bell.set()

    def _on_status(self, code: str, headers: dict[str, str]) -> None:
        if code == "100":
            return
        # The rest of a request that ran out. Where the server does not say how much that is, all of it.
        self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", self._asked)))
        if code != "408":  # not its time: no leader, a consumer that is not there yet
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
            self._connection.on_unserved()
            log.info("queue=%s pull=refused status=%s why=%s", self._queue.name, code, headers.get("Description", ""))

    def _note_answer(self) -> None:
        self._silent_at = asyncio.get_running_loop().time() + SILENCE_SECONDS

    def _due(self) -> float:
        return asyncio.get_running_loop().time() + self._queue.ack_wait.total_seconds()

    def _forget_overdue(self, now: float) -> None:
        # In the order of their coming, but for what was extended: those are looked at again when they are first.
        while self._hands and now >= self._hands[token := next(iter(self._hands))]:
            del self._hands[token]

    def _release(self, one: Delivery) -> bool:
        """Take it out of our hands; False where it is no longer in them."""
        due = self._hands.pop(one.token, None)
        self._bell.set()  # there is room again: a reader that waits for more may ask for it
        return due is not None and asyncio.get_running_loop().time() < due

    async def _say(self, tokens: Sequence[str], word: bytes) -> None:
        if not tokens or not self._connection.up.is_set():
            return  # a word that waits for the connection comes too late; the message comes again instead
        try:
            await self._connection.client.publish_together(OutgoingMessage(token, "", word) for token in tokens)
        except Error as error:
            raise Unavailable(f"not connected: {error}") from error
