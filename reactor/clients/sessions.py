"""The HTTP sessions to one Kubernetes API: one for each purpose, so that none takes another one's connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any


class Purpose(StrEnum):
    """Purpose of a call: each has its own limits."""

    ACT = "act"
    """Reads and writes of actions, and other single calls."""
    PROBE = "probe"
    """Health endpoints: a cluster is called Unhealthy by what these say, so they wait for nothing else."""
    WATCH = "watch"
    """Lists and watches of sources. An open watch keeps its connection, so their number has no limit."""


class Sessions:
    """The sessions of one set of credentials. Retired ones are closed when the last call on them has ended."""

    def __init__(self, clients: Mapping[Purpose, Any]) -> None:
        self._clients = clients
        self._calls = 0
        self._retired = False

    @asynccontextmanager
    async def lent(self, purpose: Purpose) -> AsyncIterator[Any]:
        """Give the client for this purpose, for one call."""
        self._calls += 1
        try:
            yield self._clients[purpose]
        finally:
            self._calls -= 1
            await self._close_if_done()

    async def retire(self) -> None:
        """Take no new calls; the owner lends others from now on."""
        self._retired = True
        await self._close_if_done()

    async def close(self) -> None:
        """Close all connections; calls under way end."""
        for client in self._clients.values():
            await client.close()

    async def _close_if_done(self) -> None:
        if self._retired and not self._calls:
            await self.close()
