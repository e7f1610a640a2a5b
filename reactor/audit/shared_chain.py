"""The chain of people's words: it belongs to no partition, and all routers write it.

Its newest hash is beside the positions of the partitions, written by revision after each record, and the next writer
goes on from there: a record that was cut off at the end is missing for good.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

from bus import subjects
from bus.errors import KeyNotFound, Malformed, Refused
from bus.port import Bus
from bus.topology import GROUPS
from reactor.audit.chain import ChainEntry, ChainWriter, Head
from reactor.audit.position import Position
from reactor.audit.signing import Signer
from reactor.runtime import telemetry

log = logging.getLogger(__name__)

TRIES = 20
"""Most tries to write a record or its hash that others write at the same time."""
WRITER = "routers"


class SharedChain:
    """Writes the records of people's words, each after the newest one, also where another process wrote that."""

    def __init__(self, bus: Bus, signer: Signer | None = None) -> None:
        """`signer`: signs each record's place; None: records are not signed."""
        self._chain = ChainWriter(bus, subjects.COMMANDS, signer)
        self._store = bus.store(GROUPS)
        self._key = subjects.commands_position()
        self._turn = asyncio.Lock()

    async def write(self, entry: ChainEntry) -> None:
        """Write the next record. Raises Refused where others are always faster, Unavailable."""
        async with self._turn:
            await self._write(entry)
            await self._remember(self._chain.head)

    async def _write(self, entry: ChainEntry) -> None:
        for _ in range(TRIES - 1):
            await self._chain.load((await self._known())[0].audited)
            with suppress(Refused):  # another was faster: after that one, then
                await self._chain.write(entry)
                return
        await self._chain.load((await self._known())[0].audited)
        await self._chain.write(entry)

    async def _remember(self, newest: Head) -> None:
        for _ in range(TRIES):
            known, revision = await self._known()
            if known.audited.number >= newest.number:
                return
            with suppress(Refused):
                await self._store.put(self._key, replace(known, audited=newest).dump(WRITER), revision=revision)
                return
        raise Refused(f"{self._key} was written by other routers {TRIES} times in a row")

    async def _known(self) -> tuple[Position, int]:
        """Give what is stored of the newest record, and the revision of that; nothing where it cannot be read."""
        try:
            entry = await self._store.get(self._key)
        except KeyNotFound:
            return Position(), 0
        try:
            return Position.read(entry.value), entry.revision
        except Malformed as error:
            telemetry.quarantined.labels(GROUPS.name).inc()
            log.warning("%s: %s; it is written again", self._key, error)
            return Position(), entry.revision
