"""Reads the metadata of JetStream's messages: the reply subject, and the status in the headers."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nats.aio.msg import Msg

from bus.port import Delivery

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = 9  # $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<number>.<nanoseconds>.<pending>; else with a domain

INBOX = "_INBOX"  # all inbox prefixes begin so
TRACEPARENT = "traceparent"
MESSAGE_ID = "Nats-Msg-Id"  # all that we store has one
RELAYED = "Nats-Stream"
"""A header of answers to direct gets. The server sends an answer, as an acknowledgement, to whatever subject the asker
names, also where the asker may not publish. A stream stores it like any message.
"""
REMOVED = ("KV-Operation", "Nats-Marker-Reason")  # a message with one of these headers marks a key as removed


@dataclass(frozen=True, slots=True)
class JetStreamDelivery(Delivery):
    """A delivery as JetStream gives it."""

    number: int = 0
    """Among all that its consumer delivered: without gaps if none was lost."""
    removed: bool = False
    """In a bucket: True if this is not a value but the mark of a key that was removed."""
    published: bool = True
    """In a bucket: True if one of us has written it. False: it is an answer of the server, which a user has sent
    here."""


def stored(message: Msg) -> JetStreamDelivery:
    """Read a message's metadata out of its reply subject."""
    parts = message.reply.split(".")
    delivered, sequence, number, nanoseconds, pending = parts[4:9] if len(parts) == _PLAIN else parts[6:11]
    headers = message.headers or {}
    return JetStreamDelivery(
        message.subject,
        b"" if RELAYED in headers else message.data,  # cannot be read, so it is quarantined
        int(sequence),
        # A float would lose the last digits of today's nanoseconds.
        _EPOCH + timedelta(microseconds=int(nanoseconds) // 1000),
        int(pending),
        delivered != "1",
        headers.get(TRACEPARENT),
        message.reply,
        int(number),
        any(name in headers for name in REMOVED),
        is_published(headers),
    )


def is_published(headers: Container[str]) -> bool:
    """True if a message with these headers was written to a bucket by one of us."""
    return MESSAGE_ID in headers and RELAYED not in headers


def foreign(message: Msg, stream: str, consumer: str) -> bool:
    """True if this did not come from the consumer, but was published to its inbox by another client.

    What JetStream delivers bears the subject under which it is stored, and says its stream and consumer in its reply.
    """
    parts = message.reply.split(".")
    source = parts[2:4] if len(parts) == _PLAIN else parts[4:6]
    return message.subject.startswith(INBOX) or source != [stream, consumer]


def status(message: Msg) -> str:
    """Give the status code of a message that the server itself wrote; empty for any other."""
    return (message.headers or {}).get("Status", "") if not message.reply.startswith("$JS.ACK.") else ""


async def ring(bell: asyncio.Event, *, until: float) -> None:
    """Wait until the bell rings, or the loop's clock says `until`."""
    try:
        async with asyncio.timeout_at(until):
            await bell.wait()
    except TimeoutError:
        return
    finally:
        bell.clear()
