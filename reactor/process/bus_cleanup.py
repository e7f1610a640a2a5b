"""Takes away what processes that were killed have left on the bus: their heartbeats, and who they said they were.

Pods come with new names without end; no other code takes these keys away. A key is removed if it has not changed from
one look to the next, which is many heartbeats, and no process answers for it. One that was only away writes it again.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from bus import subjects
from bus.errors import Malformed, Refused
from bus.port import Bus, KeyValueEntry
from bus.topology import LEASES
from reactor.fleet import presence

log = logging.getLogger(__name__)

LOOK_SECONDS = 120.0
ASK = timedelta(seconds=1)
MEMBER = "member"


class LeaseCollector:
    """Looks for what the dead have left while `run` runs. Every process may."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._store = bus.store(LEASES)
        self._seen: dict[str, int] = {}

    async def run(self) -> None:
        """Look until cancelled. Raises Unavailable."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once. Raises Unavailable."""
        words = {entry: subject for entry in await self._store.entries(">") if (subject := _answers(entry))}
        before, self._seen = self._seen, {entry.key: entry.revision for entry in words}
        for entry, subject in words.items():
            if before.get(entry.key) == entry.revision and await self._bus.is_present(subject, ASK) is False:
                await self._take_away(entry)

    async def _take_away(self, entry: KeyValueEntry) -> None:
        try:
            await self._store.delete(entry.key, revision=entry.revision)
        except Refused:
            log.info("%s is back", entry.key)
        else:
            log.info("%s was left behind by a process that is gone: taken away", entry.key)


def _answers(entry: KeyValueEntry) -> str:
    """Subject on which its process answers while it lives; empty: this is no word of a process about itself."""
    kind = entry.key.partition(".")[0]
    try:
        if kind == presence.KIND:
            return subjects.alive(presence.KIND + _name(entry))
        if kind.endswith(MEMBER):
            return subjects.alive(kind.removesuffix(MEMBER) + _name(entry))
    except Malformed as error:
        log.info("left alone: %s", error, extra={"key": entry.key})
    return ""


def _name(entry: KeyValueEntry) -> str:
    return presence.name_in(entry.value)
