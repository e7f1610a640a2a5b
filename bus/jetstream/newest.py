"""Newest message under each of many subjects: read once; the caller begins again where that is disturbed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from bus.errors import Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import JetStreamDelivery, ring
from bus.jetstream.lookup import last
from bus.jetstream.pushing import PushConsumer

QUIET = timedelta(seconds=0.5)  # nothing came although there should be more: it is asked whether there is
STALL = timedelta(seconds=5)  # nothing came although there is more


async def last_of_each(connection: Connection, stream: str, subject: str) -> list[JetStreamDelivery]:
    """Raises Unavailable."""
    loop, bell, found = asyncio.get_running_loop(), asyncio.Event(), list[JetStreamDelivery]()
    consumer = PushConsumer(connection, bell)
    try:
        await consumer.start(stream, subject, None)
        until = loop.time() + STALL.total_seconds()
        while not consumer.drained and not (found and found[-1].pending == 0):  # what comes since is not waited for
            if taken := await consumer.take():
                found += taken
                until = loop.time() + STALL.total_seconds()
            elif consumer.intact() and loop.time() < until:
                await ring(bell, until=min(loop.time() + QUIET.total_seconds(), consumer.silent_at))
                newest = (await last(connection, stream, subject)).sequence
                if newest <= (found[-1].sequence if found else 0):  # taken, not only come: more may come meanwhile
                    break  # the server counted what was removed, or replaced, before it came
            else:
                raise Unavailable(f"{stream} did not come to an end of {subject}")
    finally:
        await consumer.stop()
    return found
