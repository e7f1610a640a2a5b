"""The receiver: listens for Alertmanager's posts, and for those who ask whether we live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from reactor.errors import SettingsError
from reactor.webhook.auth import tls
from reactor.webhook.connections import HEADER_SECONDS, KEEPALIVE_SECONDS, Connections
from reactor.webhook.server import WebhookServer

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0  # posts that are being taken get this long to be journaled
HANDSHAKE_SECONDS = 10.0
LINGER_SECONDS = 2.0  # a sender whose body is refused gets this long to read why; 10 by default


@asynccontextmanager
async def listening(server: WebhookServer) -> AsyncIterator[str]:
    """Listen while the block runs; gives the URL, with the port where the settings leave it open.

    At the end new posts are answered 503, those being taken get STOP_SECONDS. Raises SettingsError where the address
    or a certificate cannot be used.
    """
    settings = server.settings
    context = tls(settings)
    runner = web.AppRunner(
        server.app(), access_log=None, keepalive_timeout=KEEPALIVE_SECONDS, auto_decompress=False,
        shutdown_timeout=STOP_SECONDS, lingering_time=LINGER_SECONDS,
    )  # fmt: skip
    await runner.setup()
    try:
        if runner.server is None:
            raise SettingsError("the web application did not start")
        connections = Connections(runner.server, header_seconds=HEADER_SECONDS)
        try:
            socket = await asyncio.get_running_loop().create_server(
                connections, settings.host, settings.port, ssl=context, backlog=256,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            )  # fmt: skip
        except OSError as error:
            raise SettingsError(f"receiver.listen: {settings.listen}: {error}") from error
        try:
            host, port = socket.sockets[0].getsockname()[:2]
            host = f"[{host}]" if ":" in host else host
            url = f"{'https' if context else 'http'}://{host}:{port}"
            log.info("listening", extra={"url": url})
            yield url
        finally:
            server.stopping = True
            socket.close()
    finally:
        await runner.cleanup()
