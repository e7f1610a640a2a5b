"""Reading in order without acknowledgements: a push consumer that is made anew from the last sequence when in doubt.

A push consumer with idle heartbeats costs nothing while nothing comes and has no request to renew, so one process can
hold a reader per partition. Flow control bounds what is on its way: the server waits until what it sent was taken.
The consumer lives in the server's memory and is forgotten in any crash; all that counts is the position, kept here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from bus.errors import Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import Stored, ring, status, stored
from bus.jetstream.lookup import last

HEARTBEAT = timedelta(seconds=1)
SILENCE = 2.5 * HEARTBEAT  # two heartbeats missed: the consumer is gone, or cannot reach us
FORGET = timedelta(seconds=10)  # the server drops a consumer that nobody listens to for this long
TAKE_MAX = 1_000
RETRY_SECONDS = 0.2

log = logging.getLogger(__name__)


class OrderedReading:
    """A `bus.port.Reading` over one stream and filter."""

    def __init__(self, connection: Connection, stream: str, subject: str, *, after: int) -> None:
        self._connection, self._stream, self._subject = connection, stream, subject
        self._after = after
        self._created = ""  # when the stream was created: another one of the same name starts at 1 again
        self._bell = asyncio.Event()
        self._consumer: _Push | None = None

    async def __aenter__(self) -> OrderedReading:
        """Raises Unavailable where there is no such stream, or no answer."""
        self._unwatch = self._connection.watch(self._bell.set)
        try:
            await self._open()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unwatch()
        await self._drop()

    async def next(self, timeout: timedelta) -> Sequence[Stored]:
        """Give what has come, at most 1,000 at once."""
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
                await ring(self._bell, until=min(until, self._consumer.silent_at))

    @property
    def current(self) -> bool:
        """True while the server is known to have nothing unread for us."""
        return self._consumer is not None and self._consumer.intact() and self._consumer.drained

    async def caught_up(self) -> bool:
        """What we heard is not enough: the newest fact may be stored and not yet here. False when in doubt."""
        if self._consumer is None or not self._consumer.intact():
            return False
        try:
            newest = await last(self._connection, self._stream, self._subject)
        except Unavailable:
            return False
        return newest.sequence <= self._after

    async def _reopen(self, until: float) -> None:
        if not self._connection.up.is_set():
            await ring(self._bell, until=until)
            return
        try:
            await self._open()
        except Unavailable as error:
            log.info("stream=%s subject=%s reopen=failed error=%s", self._stream, self._subject, error)
            await ring(self._bell, until=min(until, asyncio.get_running_loop().time() + RETRY_SECONDS))

    async def _open(self) -> None:
        await self._drop()
        await self._look_for_another_stream()
        consumer = _Push(self._connection, self._bell)
        try:
            await consumer.start(self._stream, self._subject, self._after)
        except BaseException:
            await consumer.stop()
            raise
        self._consumer = consumer

    async def _drop(self) -> None:
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await consumer.stop()

    async def _look_for_another_stream(self) -> None:
        """Start from the first message where the stream was wiped: its sequences begin anew below our position."""
        info = await self._connection.api(f"STREAM.INFO.{self._stream}", {})
        wiped = info["state"]["last_seq"] < self._after or self._created not in ("", info["created"])
        if wiped:
            log.warning("stream=%s reason=Wiped position=%d: reading from its first", self._stream, self._after)
            self._after = 0
        self._created = info["created"]


class _Push:
    """One push consumer, from its making until the first doubt."""

    def __init__(self, connection: Connection, bell: asyncio.Event) -> None:
        self._connection, self._bell = connection, bell
        self._losses = connection.losses
        self._name = connection.client.new_inbox().rpartition(".")[2]
        self._stream = ""
        self._subscription: Subscription | None = None
        self._number = 0  # of the last message, as the consumer counts
        self._pending: int | None = None
        self._flow = ""  # where to say that all that was sent before has been taken
        self._stalled = False
        self._broken = False
        self._heard_at = 0.0
        self.buffer: list[Stored] = []

    async def start(self, stream: str, subject: str, after: int) -> None:
        client = self._connection.client
        inbox = client.new_inbox()
        self._stream = stream
        try:
            self._subscription = await client.subscribe(inbox, cb=self._on_message)
        except Error as error:
            raise Unavailable(f"not connected: {error}") from error
        self._heard_at = asyncio.get_running_loop().time()
        answer = await self._connection.api(
            f"CONSUMER.CREATE.{stream}.{self._name}",
            {"stream_name": stream, "config": _config(self._name, inbox, subject, after), "action": "create"},
        )
        if self._pending is None:  # what comes before this answer knows better
            self._pending = answer["num_pending"]

    async def stop(self) -> None:
        """Say that nobody listens. The server forgets the consumer by itself where it cannot hear this."""
        with suppress(Error):  # the connection has ended, and the subscription with it
            if self._subscription is not None:
                await self._subscription.unsubscribe()
            if self._stream and self._connection.up.is_set():
                await self._connection.client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._name}")

    @property
    def silent_at(self) -> float:
        return self._heard_at + SILENCE.total_seconds()

    @property
    def drained(self) -> bool:
        return not self.buffer and self._pending == 0 and not self._stalled

    def intact(self) -> bool:
        """Whether nothing was lost, for all we know."""
        return (
            not self._broken
            and self._connection.up.is_set()
            and self._losses == self._connection.losses
            and asyncio.get_running_loop().time() < self.silent_at
        )

    async def take(self) -> Sequence[Stored]:
        """Give what came since, in order, up to the first doubt."""
        taken, self.buffer = self.buffer[:TAKE_MAX], self.buffer[TAKE_MAX:]
        if not self.buffer:
            await self._let_flow()
        return taken

    async def _let_flow(self) -> None:
        flow, self._flow = self._flow, ""
        if flow:
            with suppress(Error):  # not connected: then this consumer is replaced anyway
                await self._connection.client.publish(flow)

    async def _on_message(self, message: Msg) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if status(message):
            await self._on_control(message)
            return
        one = stored(message)
        if one.number != self._number + 1:
            self._broken = True
        if not self._broken:
            self._number, self._pending, self._stalled = one.number, one.pending, False
            self.buffer.append(one)
        self._bell.set()

    async def _on_control(self, message: Msg) -> None:
        headers = message.headers or {}
        stalled = headers.get("Nats-Consumer-Stalled", "")
        self._stalled = bool(stalled)
        if flow := message.reply or stalled:
            self._flow = flow
            if not self.buffer:
                await self._let_flow()
        elif int(headers.get("Nats-Last-Consumer", self._number)) != self._number:
            self._broken = True
            self._bell.set()


def _config(name: str, inbox: str, subject: str, after: int) -> dict[str, Any]:
    return {
        "name": name, "deliver_subject": inbox, "filter_subject": subject,
        "ack_policy": "none", "replay_policy": "instant",
        "deliver_policy": "by_start_sequence", "opt_start_seq": after + 1,
        "flow_control": True, "idle_heartbeat": _ns(HEARTBEAT), "inactive_threshold": _ns(FORGET),
        "mem_storage": True, "num_replicas": 1,
    }  # fmt: skip


def _ns(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000
