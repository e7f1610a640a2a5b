"""Ends a connection badly."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close() sends RST instead of FIN


def reset(request: web.BaseRequest, *, gently: bool = False) -> None:
    """Break the client's connection: with a TCP reset, or `gently` by closing after what was written has gone out."""
    transport = request.transport
    if transport is None:
        return
    if gently:
        transport.close()
        return
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
    if isinstance(transport, asyncio.Transport):
        transport.abort()
