"""Turns a body into messages on the bus.

**Ids.** A post that was stored but not answered in time comes again within seconds; a repeat (repeat_interval, minutes
or hours later) is a heartbeat and has to be stored again, although Alertmanager repeats it byte for byte and the server
remembers ids for five minutes. So the id holds a slot of time: again within the slot is stored once. A retry that falls
into the next slot is stored twice, which only costs its bytes: taking a post twice changes nothing. Two Alertmanagers
of a pair differ in nothing but externalURL, so the id is a hash of the alerts, not of the body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime

from pydantic_core import from_json

from bus import subjects
from bus.envelope import encode
from bus.messages import WebhookPost
from bus.port import Outgoing
from reactor.webhook.body import Body

SLOT_SECONDS = 10
"""Alertmanager retries within max(10 s, group_interval), and cannot mean two things by the same alerts within it."""
CHUNK_BYTES_MAX = 62_500
"""Most bytes of alerts in one message, some 125 alerts: what a source has in routers' hands holds up windows, so it
comes in small pieces."""


def outgoing(source: str, body: Body, at: datetime) -> list[Outgoing]:
    """Give the messages that a body becomes, each about 60 kB. None for a body without alerts."""
    chunks = list(_chunks(body))
    stem = f"webhook/{source}/{_digest(source, body)}/{int(at.timestamp()) // SLOT_SECONDS}"
    messages = []
    for number, alerts in enumerate(chunks):
        post = WebhookPost(
            source=source, post=body.digest, chunk=number, chunks=len(chunks), alerts=tuple(map(from_json, alerts)),
            truncated=body.truncated, observed_at=at,
        )  # fmt: skip
        id_ = f"{stem}/{number}"
        messages.append(
            Outgoing(subjects.webhook(source), encode(post, id=id_, source="/reactor/receiver", time=at), id_)
        )
    return messages


def sizes(body: Body) -> tuple[int, ...]:
    """Give how many alerts each of these messages has."""
    return tuple(len(chunk) for chunk in _chunks(body))


def _digest(source: str, body: Body) -> str:
    digest = hashlib.sha256(f"{source}\0{body.truncated}".encode())
    for text in body.alerts:
        digest.update(text)
    return digest.hexdigest()


def _chunks(body: Body) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for text in body.alerts:
        if chunk and size + len(text) + 1 > CHUNK_BYTES_MAX:
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += len(text) + 1
    if chunk:
        yield chunk
