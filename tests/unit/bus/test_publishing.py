"""Errors of nats-py for a published message, and the errors that a publisher makes of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import cast

import pytest
from nats import errors
from nats.aio.msg import Msg

from bus.errors import BusError, Malformed, Unavailable
from bus.jetstream.client import FailFastClient
from bus.jetstream.connection import KEPT_MAX, Connection
from bus.jetstream.pending_publish import PendingPublish
from bus.jetstream.publishing import Publisher
from bus.jetstream.wire import OutgoingMessage, Sink

POST = PendingPublish("reactor.commands.pause", b"{}", {"Nats-Msg-Id": "1"})


class Refusing:
    """A client that takes no message."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def new_inbox(self) -> str:
        return "_INBOX.1"

    async def publish_together(self, messages: Iterable[OutgoingMessage]) -> None:
        assert [*messages]
        raise self._error


class Full(Refusing):
    """One whose buffer is full at first; what it takes later is stored at once."""

    def __init__(self, times: int) -> None:
        super().__init__(errors.OutboundBufferLimitError())
        self._times = times
        self._answer: Sink

    async def subscribe_directly(self, _: str, sink: Sink) -> None:
        self._answer = sink

    async def publish_together(self, messages: Iterable[OutgoingMessage]) -> None:
        self._times -= 1
        if self._times >= 0:
            await super().publish_together(messages)
        for one in messages:
            self._answer(Msg(cast("FailFastClient", self), subject=one.reply, data=json.dumps({"seq": 7}).encode()))


class Silent(Refusing):
    """One whose server takes everything and answers nothing."""

    def __init__(self) -> None:
        super().__init__(errors.Error())

    async def subscribe_directly(self, _: str, __: Sink) -> None:
        return

    async def publish_together(self, messages: Iterable[OutgoingMessage]) -> None:
        assert [*messages]


def connection(error: Exception) -> Connection:
    return over(Refusing(error))


def over(client: Refusing) -> Connection:
    made = Connection(cast("FailFastClient", client), timeout=timedelta(seconds=1))
    made.up.set()
    return made


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (errors.MaxPayloadError(), Malformed),
        (errors.BadSubjectError(), Malformed),
        (errors.BadHeaderError("a b"), Malformed),
        (errors.OutboundBufferLimitError(), Unavailable),
        (errors.ConnectionClosedError(), Unavailable),
        (errors.ConnectionDrainingError(), Unavailable),
        (errors.ConnectionReconnectingError(), Unavailable),
        (errors.Error("something new"), Unavailable),
    ],
)
async def test_only_what_is_wrong_with_the_message_itself_is_the_senders_mistake(
    said: Exception, meant: type[BusError]
) -> None:
    """A connection that counts as up may have no room left: who acknowledged the message would lose it."""
    publisher = Publisher(connection(said), patience=timedelta(seconds=1))
    with pytest.raises(meant):
        await publisher.send([POST])


async def test_what_finds_the_buffer_full_is_published_when_there_is_room() -> None:
    """nats-py buffers, and runs full, some moments before it says that the connection is lost."""
    publisher = Publisher(over(Full(times=2)), patience=timedelta(seconds=5))
    await publisher.start()
    assert await publisher.send([POST]) == [7]


async def test_errors_that_never_end_take_no_more_and_more_memory() -> None:
    one = connection(errors.Error("unused"))
    for number in range(2 * KEPT_MAX + 5):
        await one.on_error(errors.Error(f'nats: permissions violation for publish to "$js.ack.{number}"'))
        assert f"$js.ack.{number}" in one.denied
    assert len(one.errors) <= KEPT_MAX
    assert len(one.denied) <= KEPT_MAX


async def test_a_server_that_was_away_until_now_is_not_said_to_store_nothing() -> None:
    """A server that answers all the time and confirms nothing may have a full disk."""
    made = over(Silent())
    publisher = Publisher(made, patience=timedelta(seconds=0.1))
    await publisher.start()
    made.up.clear()
    publishing = asyncio.create_task(publisher.send([POST]))
    await asyncio.sleep(0.05)
    await made.on_found()
    with pytest.raises(Unavailable):
        await publishing
    assert made.unstored == {}
    with pytest.raises(Unavailable):
        await publisher.send([POST])
    assert [*made.unstored] == ["reactor.commands"]
