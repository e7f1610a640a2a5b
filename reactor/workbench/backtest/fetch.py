"""Brings onto the disk what the rules' sources would have asked, a few chunks at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from reactor.workbench.backtest.grid import Chunk, Grid
from reactor.workbench.backtest.ranges import Ranges
from reactor.workbench.backtest.store import ResultStore
from reactor.workbench.backtest.value_runs import ChunkResult

AT_ONCE = 4
"""Chunks on their way at the same time: one is read while Prometheus prepares the others. Its own limit is 20."""

Progress = Callable[[int, int], None]
"""Called with how many chunks are there, and of how many."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One query over the whole range."""

    prometheus: str
    """Name of the Prometheus."""
    query: str
    grid: Grid


class FetchedResults:
    """Fetched answers, to be read as often as they are played."""

    def __init__(self, store: ResultStore, urls: Mapping[str, str]) -> None:
        self._store = store
        self._urls = urls

    def of(self, ask: Ask) -> Iterator[tuple[Chunk, range, ChunkResult]]:
        """Give each chunk in order, with the points of it that lie in the range. One is in memory at a time."""
        for chunk in ask.grid.chunks():
            answer = self._store.load(self._urls[ask.prometheus], ask.query, chunk)
            if answer is None:
                raise AssertionError("a chunk was read before it was fetched, or was deleted meanwhile")
            yield chunk, ask.grid.part(chunk), answer


async def fetch(
    asks: Iterable[Ask], servers: Mapping[str, Ranges], store: ResultStore, progress: Progress
) -> FetchedResults:
    """Fetch what is not on the disk yet. Raises QueryFailed, QueryRefused, TooLong; the first failure ends all."""
    work = [(ask, chunk) for ask in dict.fromkeys(asks) for chunk in ask.grid.chunks()]
    gate = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(ask: Ask, chunk: Chunk) -> None:
        nonlocal done
        async with gate:
            server = servers[ask.prometheus]
            if store.load(server.url, ask.query, chunk) is None:
                store.save(server.url, ask.query, chunk, await server.fetch(ask.query, chunk))
        done += 1
        progress(done, len(work))

    progress(0, len(work))
    try:
        async with asyncio.TaskGroup() as group:
            for ask, chunk in work:
                group.create_task(one(ask, chunk))
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first from first.__cause__
    return FetchedResults(store, {name: server.url for name, server in servers.items()})
