"""A push consumer: the server sends what comes, says every HEARTBEAT that it is there, and waits until we take it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from contextlib import suppress
from datetime import timedelta
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from bus.errors import Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import JetStreamDelivery, foreign, status, stored

HEARTBEAT = timedelta(seconds=2)
"""A reactor at rest reads 64 partitions: each of them costs it a message in this time."""
SILENCE = 2.25 * HEARTBEAT  # two heartbeats missed: the consumer is gone, or cannot reach us
FORGET = timedelta(seconds=10)  # the server drops a consumer without a listener after this long
TAKE_MAX = 1_000
CAME_MAX = 10_000  # sequences that are remembered between two looks; for what lacks, the server is asked


class PushConsumer:
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
        self._came: set[int] = set()
        self.buffer: list[JetStreamDelivery] = []
        self.reached = 0
        """Sequence of the last message that came."""

    async def start(self, stream: str, subject: str, after: int | None) -> None:
        """`after`: the sequence before the first that is wanted; None: the newest of each subject.

        Raises Unavailable.
        """
        client = self._connection.client
        inbox = client.new_inbox()
        self._stream = stream
        try:
            self._subscription = await client.subscribe_directly(inbox, self._on_message)
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
        """End the consumer. The server forgets it by itself where it does not get this."""
        with suppress(Error):  # the connection has ended, and the subscription with it
            if self._subscription is not None:
                await self._subscription.unsubscribe()
            if self._stream and self._connection.up.is_set():
                await self._connection.client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._name}")

    @property
    def name(self) -> str:
        """Name of the consumer on the server."""
        return self._name

    def caught_up(self) -> None:
        """Note that all that is stored has come: the server had counted as pending what was then removed, or
        replaced."""
        self._pending = 0

    def came(self, after: int) -> Set[int]:
        """The sequences after this one that came; those before are forgotten. May lack some."""
        self._came = {sequence for sequence in self._came if sequence > after}
        return self._came

    def replace(self) -> None:
        """Take this one for broken: the reader makes another."""
        self._broken = True
        self._bell.set()

    @property
    def silent_at(self) -> float:
        return self._heard_at + SILENCE.total_seconds()

    @property
    def drained(self) -> bool:
        return not self.buffer and self._pending == 0 and not self._stalled

    @property
    def unread(self) -> int:
        """Number of messages that came and were not taken, plus those that the server still has, as it last said."""
        return len(self.buffer) + (self._pending or 0)

    def intact(self) -> bool:
        """True if nothing was lost, for all we know."""
        return (
            not self._broken
            and self._connection.up.is_set()
            and self._losses == self._connection.losses
            and asyncio.get_running_loop().time() < self.silent_at
        )

    async def take(self) -> Sequence[JetStreamDelivery]:
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

    def _on_message(self, message: Msg) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if status(message):
            self._on_control(message)
            return
        if foreign(message, self._stream, self._name):
            self._connection.on_foreign(self._stream, message.subject)
            return
        one = stored(message)
        if one.number != self._number + 1:
            self._broken = True
        if not self._broken:
            self._number, self._pending, self._stalled = one.number, one.pending, False
            self.buffer.append(one)
            self.reached = one.sequence
            if len(self._came) < CAME_MAX:
                self._came.add(one.sequence)
        self._bell.set()

    def _on_control(self, message: Msg) -> None:
        headers = message.headers or {}
        stalled = headers.get("Nats-Consumer-Stalled", "")
        self._stalled = bool(stalled)
        if flow := message.reply or stalled:
            self._flow = flow
            self._bell.set()  # the reader takes what came, and says so
        elif int(headers.get("Nats-Last-Consumer", self._number)) != self._number:
            self._broken = True
            self._bell.set()


def _config(name: str, inbox: str, subject: str, after: int | None) -> dict[str, Any]:
    first: dict[str, Any] = {"deliver_policy": "last_per_subject"}
    if after is not None:
        first = {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
    return {
        "name": name, "deliver_subject": inbox, "filter_subject": subject,
        "ack_policy": "none", "replay_policy": "instant",
        **first,
        "flow_control": True, "idle_heartbeat": _ns(HEARTBEAT), "inactive_threshold": _ns(FORGET),
        "mem_storage": True, "num_replicas": 1,
    }  # fmt: skip


def _ns(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000
