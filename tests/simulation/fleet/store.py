"""A key-value bucket as one process has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from bus.errors import Unavailable
from bus.port import KeyValueEntry
from bus.testing.memory_store import MemoryStore
from tests.simulation.fleet.link import Link


class SimStore:
    """A `bus.port.Store` behind a link."""

    def __init__(self, store: MemoryStore, link: Link) -> None:
        self._store, self._link = store, link

    async def get(self, key: str) -> KeyValueEntry:
        """Raises NotFound, Unavailable."""
        return await self._link.call(f"get {key}", lambda: self._store.get(key))

    async def put(self, key: str, value: bytes, *, revision: int | None) -> int:
        """Raises Refused, and Unavailable, also where it was written."""
        return await self._link.call(f"put {key} {revision}", lambda: self._store.put(key, value, revision=revision))

    async def put_all(self, writes: Sequence[tuple[str, bytes, int]]) -> Sequence[int | None]:
        """Pipelined: a trouble on the way may let the first ones through and the rest not."""
        written = self._link.some(len(writes))

        async def put() -> Sequence[int | None]:
            revisions = await self._store.put_all(writes[:written])
            if written < len(writes):
                raise Unavailable("the connection broke in the middle")
            return revisions

        return await self._link.call(f"put {' '.join(f'{key} {revision}' for key, _, revision in writes)}", put)

    async def delete(self, key: str, *, revision: int | None) -> None:
        """Raises Refused, Unavailable."""
        await self._link.call(f"delete {key}", lambda: self._store.delete(key, revision=revision))

    async def entries(self, pattern: str) -> Sequence[KeyValueEntry]:
        """Raises Unavailable."""
        return await self._link.call(f"entries {pattern}", lambda: self._store.entries(pattern))

    async def scan(self, pattern: str) -> Sequence[KeyValueEntry]:
        """Raises Unavailable."""
        return await self._link.call(f"scan {pattern}", lambda: self._store.scan(pattern))

    async def created_at(self) -> datetime:
        """Raises Unavailable."""
        return await self._link.call("created", self._store.created_at)

    @asynccontextmanager
    async def watch(self, pattern: str) -> AsyncIterator[AsyncIterator[KeyValueEntry | str]]:
        """Each change, as late as the link lets it through."""
        await self._link.call(f"watch {pattern}", lambda: self._store.entries(pattern))
        async with self._store.watch(pattern) as changes:
            yield self._late(changes)

    async def _late(self, changes: AsyncIterator[KeyValueEntry | str]) -> AsyncIterator[KeyValueEntry | str]:
        async for change in changes:
            await self._link.delivered()
            yield change
