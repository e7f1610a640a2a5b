"""The audit as a chain: each record carries the hash of the one before it in its partition.

Each is published on the condition that the one before is the newest, so the server itself keeps a former owner, and
every other process, from writing in between. The newest hash is in the partition's state too, so that a chain that was
cut off at its end is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus import subjects
from bus.envelope import encode
from bus.errors import Malformed, Refused
from bus.message_admission import read_message
from bus.messages import ChainLink, DecisionRecord, iso
from bus.port import Bus, Fence, Outgoing
from bus.topology import DECISIONS
from reactor.audit.signing import Signer
from reactor.runtime.slices import sliced

RECORD_MAX = 900_000
"""Bytes. A server takes a million; a record that is larger is kept without its state, and cannot be replayed."""
FACTS_MAX = 100
BATCH_MIN, BATCH_MAX = 5, 100
"""Records that are stored together: the server writes them to its disk at once, and answers once. Of fewer, each by
itself costs it no more: a batch has a store of its own there."""
BATCH_BYTES_MAX = 512 << 10
PAUSE_AFTER = 25
"""Records that are put into words between two pauses of the loop: some 5 ms."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a chain."""

    number: int = 0
    hash: str = ""
    at: datetime | None = None
    """Time of its decision."""

    @classmethod
    def read(cls, stored: Mapping[str, Any] | None) -> Head:
        """Read what `stored` gives."""
        return cls(stored["number"], stored["hash"], datetime.fromisoformat(stored["at"])) if stored else cls()

    def stored(self) -> dict[str, Any] | None:
        """JSON object for the partition's state; None: there is no record yet."""
        return {"number": self.number, "hash": self.hash, "at": iso(self.at)} if self.at else None


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One record to be written."""

    record: DecisionRecord
    id: str
    source: str
    traceparent: str | None = None


def digest(body: bytes) -> str:
    """The hash by which the next record names this one."""
    return hashlib.sha256(body).hexdigest()


class ChainWriter:
    """Writes the records of one partition, or those of people's words."""

    def __init__(self, bus: Bus, partition: int | str, signer: Signer | None = None) -> None:
        """`signer`: signs each record's place; None: records are not signed."""
        self._bus = bus
        self._signer = signer
        self._partition = partition
        self._under = subjects.decisions(partition)
        self._sequence = 0
        self.head = Head()

    async def load(self, known: Head) -> None:
        """Go on after the newest record, or after the one that is `known` where that is missing. Raises Unavailable."""
        newest = await self._bus.last(DECISIONS, self._under)
        self._sequence, self.head = 0, known
        if newest is None:
            return
        self._sequence = newest.sequence
        try:
            record = read_message(newest.subject, newest.body).data
        except Malformed:
            return  # a stranger's: a verification of the audit finds it
        link = record.chain if isinstance(record, DecisionRecord) else None
        if link is not None and link.number > known.number:
            self.head = Head(link.number, digest(newest.body), record.decided_at)

    async def write(self, entry: ChainEntry) -> None:
        """Write the next record. Raises Refused where another has written, Unavailable."""
        body, head = self._linked(entry, self.head)
        sequence = await self._store(entry, body)
        if sequence <= self._sequence:
            return  # it is there already, by the id that it was given at the first time
        self._sequence, self.head = sequence, head

    async def write_all(self, entries: Sequence[ChainEntry]) -> None:
        """Write the next records, in this order. Raises Refused where another has written, Unavailable."""
        for start in range(0, len(entries), BATCH_MAX):
            some = entries[start : start + BATCH_MAX]
            if len(some) < BATCH_MIN or not await self._written_together(some):
                for entry in some:
                    await self.write(entry)

    async def _written_together(self, entries: Sequence[ChainEntry]) -> bool:
        """Store these in one batch. True if all are stored; False: none is, and the answer to each of them alone says
        why."""
        bodies, head = list[bytes](), self.head
        async for entry in sliced(entries, size=PAUSE_AFTER):
            body, head = self._linked(entry, head)
            bodies.append(body)
        if sum(map(len, bodies)) > BATCH_BYTES_MAX:
            return False
        first, *rest = [self._outgoing(entry, body) for entry, body in zip(entries, bodies, strict=True)]
        try:
            sequence = await self._bus.publish_batch([first._replace(fence=self._fence), *rest])
        except Refused:
            newest = await self._bus.last(DECISIONS, self._under)
            # Our own, whose answer was lost?
            sequence = newest.sequence if newest is not None and newest.body == bodies[-1] else None
        if sequence is None:
            return False
        self._sequence, self.head = sequence, head
        return True

    def _linked(self, entry: ChainEntry, newest: Head) -> tuple[bytes, Head]:
        """Give the record with its place behind the newest one, and what is the newest with it."""
        link = ChainLink(number=newest.number + 1, previous=newest.hash, previous_at=newest.at)
        if self._signer is not None:
            link = self._signer.signed(str(self._partition), link)
        body = _body(entry, link)
        return body, Head(link.number, digest(body), entry.record.decided_at)

    def _outgoing(self, entry: ChainEntry, body: bytes) -> Outgoing:
        subject = subjects.decision(self._partition, entry.record.rule)
        return Outgoing(subject, body, f"{self._partition}/{entry.id}", traceparent=entry.traceparent)

    @property
    def _fence(self) -> Fence:
        return Fence(self._under, self._sequence)

    async def _store(self, entry: ChainEntry, body: bytes) -> int:
        message = self._outgoing(entry, body)
        while True:
            try:
                return await self._bus.publish(message._replace(fence=self._fence))
            except Refused:
                newest = await self._bus.last(DECISIONS, self._under)
                if newest is not None and newest.body == body:
                    return newest.sequence  # our own, whose answer was lost
                if newest is not None or not self._sequence:
                    raise
                self._sequence = 0  # the record before has aged out


def _body(entry: ChainEntry, link: ChainLink) -> bytes:
    record = entry.record.model_copy(update={"chain": link})
    body = encode(record, id=entry.id, source=entry.source, time=record.decided_at)
    if len(body) > RECORD_MAX:
        short = record.model_copy(update={"before": None, "shared_group": None, "facts": record.facts[-FACTS_MAX:]})
        body = encode(short, id=entry.id, source=entry.source, time=record.decided_at)
    return body
