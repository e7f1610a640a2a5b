"""Limits on connections, which aiohttp leaves open: it waits without end for a first request's headers (measured).

Each connection counts from the moment in which it is accepted, its TLS handshake included. At a limit the oldest one
that has not sent a whole request is closed, else the one that has been idle the longest: so a client that opens
connections and sends nothing keeps no other client out. A new connection is refused only if all others are younger than
GRACE_SECONDS or being answered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.log_throttle import LogThrottle
from reactor.settings.listeners import Listener

log = logging.getLogger(__name__)

HEADER_SECONDS = 10.0
KEEPALIVE_SECONDS = 75.0
"""Longer than a reverse proxy keeps its side open, so that it never writes to a connection that we just closed."""
GRACE_SECONDS = 1.0
"""A younger connection is not closed for another one: its request is on its way."""
BACKLOG = 256


@dataclass(slots=True, eq=False)
class _OpenConnection:
    socket: socket.socket
    peer: str
    since: float
    """Time at which it was accepted, or at which its last answer was given, on the event loop's clock."""
    half_open: bool = True
    """True if no whole head of a request has come yet."""
    busy: int = field(default=0)
    """Number of requests on it that are being answered."""
    closing: bool = False

    @property
    def open(self) -> bool:
        return not self.closing and self.socket.fileno() >= 0


class Connections:
    """The connections of one listener. It makes the protocols for `loop.create_server`: aiohttp's, behind limits."""

    def __init__(self, name: str, limits: Listener, clock: Clock, *, header_seconds: float = HEADER_SECONDS) -> None:
        """`name`: of the listener, for metrics and the log."""
        self._name = name
        self._limits = limits
        self._throttle = LogThrottle(clock)
        self._by_number: dict[int, _OpenConnection] = {}
        self._by_handler: dict[object, _OpenConnection] = {}
        self.header_seconds = header_seconds
        self.make: Callable[[], asyncio.Protocol] | None = None
        telemetry.connections.labels(name).set_function(lambda: len(self._open()))

    def __call__(self) -> asyncio.Protocol:
        if self.make is None:
            msg = "the web application has not started"
            raise RuntimeError(msg)
        return _Limited(self, self.make())

    async def serve(self, make: Callable[[], asyncio.Protocol], address: tuple[str, int], **options: Any) -> Listening:
        """Listen, on each address that the host has. `options`: of `loop.create_server`. Raises OSError."""
        self.make = make
        loop, listening = asyncio.get_running_loop(), Listening()
        try:
            for family, host in await _addresses(*address):
                bound = socket.create_server((host, address[1]), family=family, backlog=BACKLOG)
                counted = _Counted(bound, self.accepted)
                listening.servers.append(await loop.create_server(self, sock=counted, backlog=BACKLOG, **options))
        except BaseException:  # a cancellation too: addresses that were bound already stay bound
            listening.close()
            raise
        return listening

    def accepted(self, accepted: socket.socket, peer: str) -> None:
        """Count a new connection, and close another one, or this one, where it is one too many."""
        one = _OpenConnection(accepted, peer, asyncio.get_running_loop().time())
        open_ = self._open()
        same = [other for other in open_ if other.peer == peer]
        if len(same) >= self._limits.max_connections_per_peer:
            self._make_room(one, same, "maxConnectionsPerPeer")
        elif len(open_) >= self._limits.max_connections:
            self._make_room(one, open_, "maxConnections")
        self._by_number[accepted.fileno()] = one

    @web.middleware
    async def in_use(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Know which connections are being answered: these are not closed for others."""
        one = self._by_handler.get(request.protocol)
        if one is None:
            return await handler(request)
        one.busy += 1
        try:
            return await handler(request)
        finally:
            one.busy -= 1
            one.since = asyncio.get_running_loop().time()

    def began(self, transport: asyncio.BaseTransport, handler: object) -> _OpenConnection | None:
        """Take note of who answers on a connection, once its TLS handshake is done."""
        one = self._by_number.get(transport.get_extra_info("socket").fileno())
        if one is not None:
            self._by_handler[handler] = one
        return one

    def ended(self, handler: object) -> None:
        """Take note that a connection is closed."""
        if one := self._by_handler.pop(handler, None):
            one.closing = True

    def _open(self) -> Collection[_OpenConnection]:
        self._by_number = {number: one for number, one in self._by_number.items() if one.open}
        return self._by_number.values()

    def _make_room(self, new: _OpenConnection, among: Iterable[_OpenConnection], limit: str) -> None:
        idle = [one for one in among if not one.busy and new.since - one.since >= GRACE_SECONDS]
        victim = min(idle, key=lambda one: (not one.half_open, one.since), default=new)
        fate = "refused" if victim is new else "half-open" if victim.half_open else "idle"
        telemetry.connections_closed.labels(self._name, limit, fate).inc()
        if self._throttle((limit, fate)):
            extra = {"listener": self._name, "limit": limit, "closed": fate, "peer": victim.peer}
            log.warning("there are too many connections", extra=extra)
        victim.closing = True
        try:
            victim.socket.shutdown(socket.SHUT_RDWR)  # its transport reads the end, and closes it
        except OSError as error:
            log.debug("a connection was closed already", extra={"reason": str(error)})


class Listening:
    """Sockets that are being listened on."""

    def __init__(self) -> None:
        self.servers: list[asyncio.Server] = []

    @property
    def url_host(self) -> str:
        """Host and port, as a URL has them, of the first."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        """Take no new connections."""
        for server in self.servers:
            server.close()


class _Counted(socket.socket):
    """A listening socket that tells of each connection before its TLS handshake begins."""

    def __init__(self, bound: socket.socket, told: Callable[[socket.socket, str], None]) -> None:
        super().__init__(bound.family, bound.type, bound.proto, fileno=bound.detach())
        self.setblocking(False)
        self._told = told

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        self._told(accepted, address[0])
        return accepted, address


async def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )  # fmt: skip
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


class _Limited(asyncio.Protocol):
    """Passes everything on. Closes the connection if the first headers are not complete in time."""

    def __init__(self, all_: Connections, inner: asyncio.Protocol) -> None:
        self._all = all_
        self._inner = inner
        self._connection: _OpenConnection | None = None
        self._seen = b""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection = self._all.began(transport, self._inner)
        self._inner.connection_made(transport)
        if not isinstance(transport, asyncio.Transport):
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._all.header_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._deadline:
            # The end of the headers may be split over two pieces; their size is limited by the parser.
            self._seen = self._seen[-3:] + data
            if b"\r\n\r\n" in self._seen:
                self._clear_deadline()
                if self._connection is not None:
                    self._connection.half_open = False
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.ended(self._inner)
        self._clear_deadline()
        self._inner.connection_lost(exc)

    def _clear_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline, self._seen = None, b""
