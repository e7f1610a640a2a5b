"""A TCP proxy between a reactor and the world: slow, half-open, or cut, on order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 64 << 10


@dataclass(slots=True)
class Link:
    """All connections through one proxy."""

    port: int = 0
    delay: float = 0.0
    """Seconds that every chunk takes in each direction."""
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared: connections stay as they are and nothing comes through, as when a firewall forgets them."""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def cut(self) -> None:
        """Reset all connections that there are."""
        for writer in self._writers:
            writer.transport.abort()

    async def end(self) -> None:
        """Stop carrying."""
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes, in order, each chunk after the delay."""
        self._writers.add(writer)
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await asyncio.sleep(self.delay)
                await self.open.wait()
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass  # either side has gone: so does the other
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def start(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction until either side ends."""
        task = asyncio.create_task(self.carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def proxy(host: str, port: int, *, listen: str = "127.0.0.1") -> AsyncIterator[Link]:
    """Listen on a free port, and carry what comes to this host and port."""
    link = Link()
    link.open.set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # no server there: the caller is cut off as it would be by the real one
            far_reader, far_writer = await asyncio.open_connection(host, port)
            link.start(reader, far_writer)
            link.start(far_reader, writer)
            return
        writer.transport.abort()

    server = await asyncio.start_server(accept, listen, 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        await link.end()
