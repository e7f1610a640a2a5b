"""A stream's reader and a queue's worker as one process has them: what the server gives is a while on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from bus.errors import Unavailable
from bus.port import Delivery
from bus.testing.memory_parts import MemoryReading, MemoryWork
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.server import Server


class SimReading:
    """A `bus.port.Reading` behind a link. What was on its way when the link was cut comes when it is whole again."""

    def __init__(self, reading: MemoryReading, link: Link) -> None:
        self._reading, self._link = reading, link
        self._flying: Sequence[Delivery] = ()
        self._due = 0.0

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Empty after `timeout`; being cancelled loses nothing."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout.total_seconds()
        if not self._flying:
            self._flying = await self._reading.next(timeout)
            self._due = loop.time() + self._link.latency()
        if not self._flying or not await self._link.until(self._due, until):
            return ()
        given, self._flying = self._flying, ()
        return given

    @property
    def current(self) -> bool:
        """As far as we heard: what is on its way does not count yet."""
        return self._link.up

    @property
    def unread(self) -> int:
        """Number of messages that were not given out, those on their way included."""
        return len(self._flying) + self._reading.unread

    @property
    def position(self) -> int:
        """Of what arrived; what is on its way was not given out."""
        return self._flying[0].sequence - 1 if self._flying else self._reading.position

    async def newest(self) -> int:
        """Raises Unavailable."""
        return await self._link.call("newest?", self._reading.newest)


class SimWork:
    """A `bus.port.Work` behind a link. Each acknowledgement of a delivery may be lost, without an error."""

    def __init__(self, work: MemoryWork, server: Server, link: Link) -> None:
        self._work, self._server, self._link = work, server, link

    async def next(self, timeout: timedelta) -> Sequence[Delivery]:
        """Empty after `timeout`. What a cut link swallows comes again after ack_wait."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout.total_seconds()
        while True:
            if self._link.up and not self._server.down:
                try:
                    given = await self._work.next(timedelta(seconds=max(until - loop.time(), 0)))
                except Unavailable:
                    given = ()
                if given and await self._link.until(loop.time() + self._link.latency(), until + 1):
                    self._link.trace(f"given {' '.join(one.subject for one in given)}")
                    return given
            if loop.time() >= until:
                return ()
            await asyncio.sleep(min(0.2, max(until - loop.time(), 0)))

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """One way."""
        self._link.say(f"done {len(deliveries)}", lambda: self._work.ack(deliveries))

    async def nak(self, delivery: Delivery, delay: timedelta) -> None:
        """One way."""
        self._link.say(f"later {delivery.sequence}", lambda: self._work.nak(delivery, delay))

    async def in_progress(self, delivery: Delivery) -> None:
        """One way."""
        self._link.say(f"extend {delivery.sequence}", lambda: self._work.in_progress(delivery))
