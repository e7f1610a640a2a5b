"""A TCP server of a test, of which nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, *, ssl: SSLContext | None = None) -> AsyncIterator[int]:
    """Serve while the block runs, and give the port. Afterwards each connection is closed, whatever the handler waits
    for: one that is left is found by the garbage collector in the middle of another test, which then fails."""
    handling: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling[asyncio.current_task()] = writer
        await handler(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=ssl)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task, writer in handling.items():
            if task is not None:
                task.cancel()
            writer.transport.abort()
        await asyncio.gather(*(task for task in handling if task is not None), return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes what was aborted
