"""Observations of publishers on the bus above their rate: they wait in a stream of their own for their turn.

It is routed in pieces, with pauses that are longer than the work: what others say waits behind one piece of it at most.
To put it there costs little, because many observations become one message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta

from bus import subjects
from bus.envelope import Event, encode
from bus.errors import Malformed, Unavailable
from bus.message_admission import read_message
from bus.messages import Delayed, Excess
from bus.port import Bus, Delivery, Outgoing, WorkQueue
from bus.topology import DELAYED, EXCESS, INBOX
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.quarantine import failed, quarantine

PACK_BYTES_MAX = 500_000
"""Most bytes of observations in one message: in base64, with all around them, well below the server's limit of 1
MiB."""
PACK_MAX = 200
"""Observations in one message: what is routed between two pauses."""
PAUSES = 3.0
"""Length of the pause behind a piece, as a multiple of the time that the piece took."""
OTHERS_FIRST_SECONDS = 1.0
"""Longest wait, in seconds, of a piece while the inbox is behind: other messages come first, and no excess waits
without end."""
LOOK_SECONDS = 0.05
WAIT = timedelta(seconds=5)
AGAIN = timedelta(seconds=2)

log = logging.getLogger(__name__)


class ExcessRouter:
    """Routes the excess of all publishers, in the order in which it came."""

    def __init__(
        self,
        bus: Bus,
        messages: Callable[[Delivery, Event], Sequence[Outgoing]],
        clock: Clock,
        behind: Callable[[], bool],
    ) -> None:
        """`messages`: gives what an observation becomes; raises Malformed. `behind`: whether the inbox is behind."""
        self._behind = behind
        self._bus = bus
        self._messages = messages
        self._clock = clock

    async def run(self) -> None:
        """Route until cancelled. Raises Unavailable."""
        async with self._bus.work(DELAYED, batch=1) as work:
            while True:
                for delivery in await work.next(WAIT):
                    await self._others_first()
                    began = self._clock.monotonic()
                    await self._route(work, delivery)
                    await asyncio.sleep(PAUSES * (self._clock.monotonic() - began))

    async def _others_first(self) -> None:
        until = self._clock.monotonic() + OTHERS_FIRST_SECONDS
        while self._behind() and self._clock.monotonic() < until:  # noqa: ASYNC110 - an event of another task's count
            await asyncio.sleep(LOOK_SECONDS)

    async def _route(self, work: WorkQueue, delivery: Delivery) -> None:
        try:
            await self._bus.publish_all([message for one in unpacked(delivery) for message in self._of(one)])
        except Malformed as error:
            quarantine(delivery, EXCESS, error)
            await work.ack([delivery])
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            await work.nak(delivery, AGAIN)
        else:
            await work.ack([delivery])

    def _of(self, one: Delivery) -> Sequence[Outgoing]:
        try:
            return self._messages(one, read_message(one.subject, one.body))
        except Malformed as error:
            quarantine(one, INBOX, error)
        except Exception as error:  # noqa: BLE001 - a mistake of ours: given again it would stop us, and all behind it
            failed(one, INBOX, error)
        return ()


def packed(deliveries: Sequence[Delivery]) -> Sequence[Outgoing]:
    """Give what carries these to the excess, those of each publisher in their order; too large ones are left out."""
    by_source: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        by_source.setdefault(subjects.source_in(delivery.subject), []).append(delivery)
    return [_pack(source, some) for source, own in by_source.items() for some in _pieces(own)]


def unpacked(delivery: Delivery) -> Sequence[Delivery]:
    """Give what a message of the excess carries, as it came. Raises Malformed."""
    excess = read_message(delivery.subject, delivery.body).data
    for one in excess.delayed:
        if not subjects.is_spoken(one.subject) or subjects.source_in(one.subject) != excess.source:
            raise Malformed(f"a message on {one.subject} is none of the source {excess.source!r}")
    return [
        Delivery(one.subject, _bytes(one.body), one.sequence, one.stored_at, 0, traceparent=one.traceparent)
        for one in excess.delayed
    ]


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise Malformed(f"not base64: {error}") from error


def _pieces(deliveries: Iterable[Delivery]) -> Iterator[list[Delivery]]:
    piece: list[Delivery] = []
    size = 0
    for one in deliveries:
        if len(one.body) > PACK_BYTES_MAX:
            quarantine(one, INBOX, Malformed(f"{len(one.body)} bytes are too many to wait for its turn"))
            continue
        if piece and (size + len(one.body) > PACK_BYTES_MAX or len(piece) >= PACK_MAX):
            yield piece
            piece, size = [], 0
        piece.append(one)
        size += len(one.body)
    if piece:
        yield piece


def _pack(source: str, deliveries: Sequence[Delivery]) -> Outgoing:
    telemetry.observations_delayed.inc(len(deliveries))
    first = deliveries[0]
    those = hashlib.sha256(repr([one.sequence for one in deliveries]).encode()).hexdigest()
    id_ = f"excess/{first.stored_at.timestamp()}/{those}"
    delayed = tuple(
        Delayed(
            subject=one.subject, body=b64encode(one.body).decode(), sequence=one.sequence, stored_at=one.stored_at,
            traceparent=one.traceparent,
        )
        for one in deliveries
    )  # fmt: skip
    excess = Excess(source=source, delayed=delayed, observed_at=first.stored_at)
    body = encode(excess, id=id_, source="/reactor/router", time=first.stored_at)
    return Outgoing(subjects.excess(source), body, id_)
