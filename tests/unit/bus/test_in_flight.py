"""Messages in flight are bounded: a disk that is slower than the publishers gets each once, and all are stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from bus.errors import Unavailable
from bus.jetstream.client import FailFastClient
from bus.jetstream.connection import Connection
from bus.jetstream.in_flight import InFlightLimit
from bus.jetstream.pending_publish import PendingPublish
from bus.jetstream.publishing import UNANSWERED_MAX, Publisher
from bus.jetstream.wire import OutgoingMessage, Sink
from tests.clock import on_virtual_time

SENDERS, EACH = 64, 100
"""As many as partitions, and as many groups as one of them decides at once."""


class Disk:
    """A server that stores one message after the other, each in this many seconds; None: it never answers."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._free_at = 0.0
        self._answer: Sink
        self.taken: list[str] = []
        """The ids that came, in order."""
        self.waiting = self.most_waiting = 0

    def new_inbox(self) -> str:
        return "_INBOX.1"

    async def subscribe_directly(self, _: str, sink: Sink) -> None:
        self._answer = sink

    async def publish_together(self, messages: Iterable[OutgoingMessage]) -> None:
        loop = asyncio.get_running_loop()
        for one in messages:
            self.taken.append((one.headers or {})["Nats-Msg-Id"])
            if self._seconds is not None:
                self.waiting += 1
                self.most_waiting = max(self.waiting, self.most_waiting)
                self._free_at = max(loop.time(), self._free_at) + self._seconds
                loop.call_at(self._free_at, self._stored, one.reply)

    def _stored(self, reply: str) -> None:
        self.waiting -= 1
        self._answer(Msg(cast("FailFastClient", self), subject=reply, data=json.dumps({"seq": 7}).encode()))


async def publisher(disk: Disk) -> Publisher:
    connection = Connection(cast("FailFastClient", disk), timeout=timedelta(seconds=2))
    connection.up.set()
    made = Publisher(connection, patience=timedelta(seconds=10))
    await made.start()
    return made


def groups(sender: int, count: int = EACH) -> list[PendingPublish]:
    return [
        PendingPublish(f"$KV.reactor_groups.{sender}.{number}", b"{}", {"Nats-Msg-Id": f"{sender}-{number}"})
        for number in range(count)
    ]


async def send(disk: Disk, *posts: list[PendingPublish]) -> list[Any]:
    made = await publisher(disk)
    return await asyncio.gather(*(made.send(some) for some in posts), return_exceptions=True)


@pytest.mark.parametrize("seconds", [0.001, 0.005], ids=["6 s for all", "32 s for all"])
def test_a_disk_that_is_slower_than_what_comes_gets_each_message_once(seconds: float) -> None:
    """A message that waits longer than a request may take is not lost: published again, it would come behind all
    others."""
    disk = Disk(seconds)
    results = on_virtual_time(send(disk, *(groups(sender) for sender in range(SENDERS))))
    assert results == [[7] * EACH] * SENDERS
    assert len(disk.taken) == len(set(disk.taken)) == SENDERS * EACH
    assert disk.most_waiting <= UNANSWERED_MAX


def test_a_piece_that_is_stored_slowly_is_not_published_again_while_answers_come() -> None:
    disk = Disk(0.01)
    results = on_virtual_time(send(disk, groups(0, UNANSWERED_MAX)))  # five seconds, where a request may take two
    assert results == [[7] * UNANSWERED_MAX]
    assert len(disk.taken) == UNANSWERED_MAX


def test_one_stream_does_not_wait_for_another() -> None:
    disk = Disk(0.0)
    made = [PendingPublish("$KV.reactor_leases.a", b"", {"Nats-Msg-Id": "lease"})]
    on_virtual_time(send(disk, *(groups(sender) for sender in range(SENDERS)), made))
    assert disk.taken.index("lease") <= UNANSWERED_MAX


def test_all_who_wait_behind_a_server_that_is_silent_give_up_with_the_first() -> None:
    """Each trying for itself would wait as long, one after the other."""

    async def timed() -> tuple[list[Any], float]:
        began = asyncio.get_running_loop().time()
        results = await send(Disk(None), *(groups(sender) for sender in range(SENDERS)))
        return results, asyncio.get_running_loop().time() - began

    results, took = on_virtual_time(timed())
    assert {type(one) for one in results} == {Unavailable}
    assert took == pytest.approx(10.0, abs=0.5)


def test_a_caller_that_is_cancelled_in_line_keeps_no_turn() -> None:
    async def scene() -> None:
        limit = InFlightLimit(10)
        await limit.acquire(10)
        first, second = (asyncio.create_task(limit.acquire(count)) for count in (6, 5))
        await asyncio.sleep(0)
        first.cancel()
        limit.release(5)
        await second
        await asyncio.gather(first, return_exceptions=True)
        assert first.cancelled()

    on_virtual_time(scene())


def test_a_turn_that_came_as_its_owner_was_cancelled_goes_to_the_next() -> None:
    async def scene() -> None:
        limit = InFlightLimit(10)
        await limit.acquire(10)
        first, second = (asyncio.create_task(limit.acquire(count)) for count in (6, 5))
        await asyncio.sleep(0)
        limit.release(10)
        first.cancel()
        await second
        await limit.acquire(5)
        await asyncio.gather(first, return_exceptions=True)

    on_virtual_time(scene())


def test_more_than_fits_goes_alone() -> None:
    async def scene() -> None:
        limit = InFlightLimit(10)
        await limit.acquire(20)
        waits = asyncio.create_task(limit.acquire(1))
        await asyncio.sleep(0)
        assert not waits.done()
        limit.release(20)
        await waits

    on_virtual_time(scene())
