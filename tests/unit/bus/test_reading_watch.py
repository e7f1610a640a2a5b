"""At rest one question for each stream is enough: a reading asks for itself only where something did not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Any

import pytest

from bus.errors import Unavailable
from bus.jetstream.reading_watch import GRACE_SECONDS, LOOK_SECONDS, ReadingWatch
from tests.clock import on_virtual_time

ONE, TWO, BOTH = "facts.1.>", "facts.2.>", "facts.>"


class Reading:
    """One that notes what is asked of it."""

    def __init__(self, subject: str, stream: str = "FACTS") -> None:
        self.stream, self.subject = stream, subject
        self.silent_at: float | None = None
        self.doubtful = False
        self.sequences: set[int] = set()
        self.looks = self.wakes = 0

    def came(self, after: int) -> Set[int]:
        return {sequence for sequence in self.sequences if sequence > after}

    def wake(self) -> None:
        self.wakes += 1
        self.silent_at = None

    async def look(self) -> None:
        self.looks += 1


class Server:
    """One stream; a question fails while it is away."""

    def __init__(self) -> None:
        self.last, self.created, self.away, self.asked = 0, "then", False, 0

    async def api(self, name: str, _: dict[str, Any]) -> dict[str, Any]:
        assert name == "STREAM.INFO.FACTS"
        self.asked += 1
        if self.away:
            raise Unavailable("away")
        return {"state": {"last_seq": self.last}, "created": self.created}


Steps = Callable[[Server, ReadingWatch], Awaitable[None]]


def played(steps: Steps, *readings: Reading) -> None:
    async def run() -> None:
        server = Server()
        watch = ReadingWatch(server.api)
        for reading in readings:
            watch.add(reading)
        await asyncio.sleep(LOOK_SECONDS + 0.01)  # the first one every reader makes by itself: nothing is known before
        for reading in readings:
            assert reading.looks == 1
            reading.looks = 0
        try:
            await steps(server, watch)
        finally:
            for reading in readings:
                watch.remove(reading)
            await asyncio.sleep(0.01)

    on_virtual_time(run())


async def looked() -> None:
    await asyncio.sleep(LOOK_SECONDS + GRACE_SECONDS + 0.01)


@pytest.mark.parametrize(
    ("one", "two", "looks"),
    [
        (set[int](), set[int](), (1, 1)),  # nothing of what is stored was delivered
        ({1, 2}, {3}, (0, 0)),  # each message came to the one whose it is
        ({1}, {3}, (1, 1)),  # the second one may be either's
        ({1, 2, 3}, {3}, (0, 0)),
    ],
)
def test_a_reading_asks_for_itself_where_a_message_came_to_none(
    one: set[int], two: set[int], looks: tuple[int, int]
) -> None:
    first, second = Reading(ONE), Reading(TWO)

    async def steps(server: Server, _: ReadingWatch) -> None:
        server.last, first.sequences, second.sequences = 3, one, two
        await looked()
        assert (first.looks, second.looks) == looks
        await looked()
        assert (first.looks, second.looks) == looks  # nothing more is stored

    played(steps, first, second)


def test_what_comes_within_the_grace_was_on_its_way() -> None:
    reading = Reading(ONE)

    async def steps(server: Server, _: ReadingWatch) -> None:
        server.last = 1
        await asyncio.sleep(LOOK_SECONDS + GRACE_SECONDS / 2)
        reading.sequences = {1}
        await looked()
        assert reading.looks == 0

    played(steps, reading)


@pytest.mark.parametrize("subject", [BOTH, "facts.*.a", ONE])
def test_what_came_to_one_is_no_proof_for_another_that_should_have_had_it_too(subject: str) -> None:
    served, starved = Reading(ONE), Reading(subject)

    async def steps(server: Server, _: ReadingWatch) -> None:
        server.last, served.sequences = 1, {1}
        await looked()
        assert starved.looks == 1

    played(steps, served, starved)


def test_a_reading_that_doubts_asks_each_time() -> None:
    reading = Reading(ONE)

    async def steps(_: Server, __: ReadingWatch) -> None:
        reading.doubtful = True
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert reading.looks == 3

    played(steps, reading)


@pytest.mark.parametrize(("last", "created"), [(5, "now"), (0, "then")])
def test_another_stream_proves_nothing(last: int, created: str) -> None:
    reading = Reading(ONE)

    async def steps(server: Server, _: ReadingWatch) -> None:
        server.last, reading.sequences = 5, {1, 2, 3, 4, 5}
        await looked()
        assert reading.looks == 0
        server.last, server.created = last, created
        await looked()
        assert reading.looks >= 1

    played(steps, reading)


def test_a_server_that_is_away_is_asked_again() -> None:
    reading = Reading(ONE)

    async def steps(server: Server, _: ReadingWatch) -> None:
        server.away, before = True, server.asked
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert (server.asked - before, reading.looks) == (3, 0)

    played(steps, reading)


def test_a_reading_is_woken_when_its_consumer_is_silent() -> None:
    reading = Reading(ONE)

    async def steps(_: Server, __: ReadingWatch) -> None:
        now = asyncio.get_running_loop().time
        reading.silent_at = now() + 2 * LOOK_SECONDS
        await asyncio.sleep(2 * LOOK_SECONDS - 0.01)
        early = reading.wakes
        await asyncio.sleep(LOOK_SECONDS)
        assert (early, reading.wakes) == (0, 1)

    played(steps, reading)
