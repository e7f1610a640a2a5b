"""Key-value buckets in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from bus.errors import KeyNotFound, Refused
from bus.port import KeyValueEntry
from bus.testing.memory_parts import Availability, Log, matches


class MemoryStore:
    """A `bus.port.Store`: the newest change of each key, and the value after it."""

    def __init__(self, check: Availability, now: Callable[[], datetime]) -> None:
        self._check, self._now = check, now
        self._log = Log(now())
        self._standing: dict[str, KeyValueEntry] = {}

    async def get(self, key: str) -> KeyValueEntry:
        """Raises KeyNotFound, Unavailable."""
        self._check()
        if key not in self._standing:
            raise KeyNotFound(key)
        return self._standing[key]

    async def put(self, key: str, value: bytes, *, revision: int | None) -> int:
        """Write if the key is at `revision`. Raises Refused, Unavailable."""
        self._expect(key, revision)
        new = self._log.roll_up(key, value, self._now())
        self._standing[key] = KeyValueEntry(key, value, new, self._now())
        return new

    async def put_all(self, writes: Sequence[tuple[str, bytes, int]]) -> Sequence[int | None]:
        """Write many: the new revision for each, None where it was refused."""
        revisions: list[int | None] = []
        for key, value, revision in writes:
            try:
                revisions.append(await self.put(key, value, revision=revision))
            except Refused:
                revisions.append(None)
        return revisions

    async def delete(self, key: str, *, revision: int | None) -> None:
        """Remove. No error where there is none. Raises Refused, Unavailable."""
        if key in self._standing:
            self._expect(key, revision)
            del self._standing[key]
            self._log.roll_up(key, b"", self._now())

    async def entries(self, pattern: str) -> Sequence[KeyValueEntry]:
        """All entries under a pattern, in the order of their revisions."""
        self._check()
        found = [entry for entry in self._standing.values() if matches(pattern, entry.key)]
        return sorted(found, key=lambda entry: entry.revision)

    async def scan(self, pattern: str) -> Sequence[KeyValueEntry]:
        """The same."""
        return await self.entries(pattern)

    async def created_at(self) -> datetime:
        """Time at which the bucket was created."""
        self._check()
        return self._log.created

    @asynccontextmanager
    async def watch(self, pattern: str) -> AsyncIterator[AsyncIterator[KeyValueEntry | str]]:
        """All entries under a pattern, then each change."""
        self._check()
        yield self._changes(pattern)

    def wipe(self) -> None:
        """Be another bucket of the same name, without entries."""
        self._standing.clear()
        self._log.wipe(self._now())

    async def _changes(self, pattern: str) -> AsyncIterator[KeyValueEntry | str]:
        position, created = self._log.sequence, self._log.created
        for entry in await self.entries(pattern):
            yield entry
        while True:
            if self._log.created != created:
                position, created = 0, self._log.created
            while position < self._log.sequence:  # one by one: who takes many of them pauses in between
                position += 1
                one = self._log.messages.get(position)
                if one is not None and matches(pattern, one.subject):
                    yield self._standing.get(one.subject, one.subject)
            await self._log.changed.wait()

    def _expect(self, key: str, revision: int | None) -> None:
        self._check()
        standing = self._standing[key].revision if key in self._standing else 0
        if revision is not None and revision != standing:
            raise Refused(f"{key} is at revision {standing}, not at {revision}")
