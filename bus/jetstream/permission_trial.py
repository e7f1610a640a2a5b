"""Tries the permissions of this user, without leaving anything stored.

A message for a stream is sent with an expectation that cannot hold, so that the server answers and stores nothing. What
is not permitted the server tells before it answers the next ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from nats.errors import Error, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from bus import subjects, topology
from bus.errors import Unavailable
from bus.jetstream.jetstream_bus import JetStreamBus

NEVER = {"Nats-Expected-Stream": "no-stream-has-this-name"}
WAIT = timedelta(seconds=1)
_WHO = "check"


def stored() -> Sequence[str]:
    """One subject for each permission to store that is needed."""
    ours = [
        subjects.webhook(_WHO), subjects.parked(_WHO), subjects.observed(0, _WHO, _WHO),
        subjects.fact(0, "route", _WHO), subjects.fact(0, "pause", _WHO), subjects.fact(0, "acquirerequest", _WHO),
        subjects.fact(0, "outcome", _WHO), subjects.action(0, _WHO, _WHO), subjects.owner(0),
        subjects.decision(0, _WHO),
    ]  # fmt: skip
    return [*ours, *(f"$KV.{bucket.name}.{_WHO}" for bucket in topology.BUCKETS)]


SENT = (
    *(f"$JS.ACK.{queue.stream}.{queue.name}.{_WHO}" for queue in topology.QUEUES),
    f"$JS.FC.{topology.FACTS.name}.{_WHO}",
    subjects.refresh(_WHO),
)  # fmt: skip
"""Core messages without an answer."""
HEARD = (subjects.alive(_WHO), subjects.refresh(_WHO), subjects.wanted(0))


async def missing(bus: JetStreamBus) -> Sequence[str]:
    """Give what is not permitted, in the server's words. Raises Unavailable."""
    connection = bus.connection
    before = set(connection.errors)
    try:
        await asyncio.gather(*(_try(bus, subject) for subject in stored()))
        for subject in SENT:
            await connection.client.publish(subject, b"")
        for subject in HEARD:
            subscription = await connection.client.subscribe(subject)
            await connection.client.flush()
            with suppress(Error):  # one that was refused is gone already
                await subscription.unsubscribe()
        await connection.client.flush()
    except Error as error:
        raise Unavailable(f"not connected: {error}") from error
    return sorted(text for key, text in connection.errors.items() if key not in before and "ermissions" in text)


async def _try(bus: JetStreamBus, subject: str) -> None:
    """Send a request that cannot hold. No answer: not permitted, which the server tells by itself, or no such stream,
    which others find."""
    with suppress(NoRespondersError, NatsTimeoutError, TimeoutError):
        await bus.connection.client.request(subject, b"", timeout=WAIT.total_seconds(), headers=dict(NEVER))
