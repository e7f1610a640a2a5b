"""Limits on connections, which aiohttp leaves open: it waits for ever for a first request's headers (measured)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 1000
HEADER_SECONDS = 10.0
KEEPALIVE_SECONDS = 75.0
"""Longer than a reverse proxy keeps its side open, so that it never writes to a connection that we just closed."""


class Connections:
    """Makes protocols, for `loop.create_server`: each is aiohttp's own behind a limit."""

    def __init__(self, make: Callable[[], asyncio.Protocol], *, header_seconds: float = HEADER_SECONDS) -> None:
        self._make = make
        self.header_seconds = header_seconds
        self.open = 0

    def __call__(self) -> asyncio.Protocol:
        return _Limited(self, self._make())


class _Limited(asyncio.Protocol):
    """Passes everything on. Closes the connection if the first headers are not complete in time."""

    def __init__(self, all_: Connections, inner: asyncio.Protocol) -> None:
        self._all = all_
        self._inner = inner
        self._seen = b""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._all.open += 1
        self._inner.connection_made(transport)
        if not isinstance(transport, asyncio.Transport):
            return
        if self._all.open > CONNECTIONS_MAX:
            transport.abort()  # an answer would have to wait for its request
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._all.header_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._deadline:
            # The end of the headers may be split over two pieces; their size is limited by the parser.
            self._seen = self._seen[-3:] + data
            if b"\r\n\r\n" in self._seen:
                self._done()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open -= 1
        self._done()
        self._inner.connection_lost(exc)

    def _done(self) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline, self._seen = None, b""
