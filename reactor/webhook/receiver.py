"""The receiver: listens for Alertmanager's posts, and, on a port of its own, for those who ask whether we live."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.listeners import Listener
from reactor.settings.receiver_settings import HealthSettings
from reactor.webhook.auth import tls
from reactor.webhook.connections import HEADER_SECONDS, KEEPALIVE_SECONDS, Connections
from reactor.webhook.malformed import server_logger
from reactor.webhook.webhook_server import WebhookServer

log = logging.getLogger(__name__)

STOP_SECONDS = 1.5  # posts that are being taken get this long to be journaled
HANDSHAKE_SECONDS = 10.0
LINGER_SECONDS = 2.0  # a sender whose body is refused gets this long to read why; 10 by default


@asynccontextmanager
async def listening(server: WebhookServer) -> AsyncIterator[str]:
    """Listen while the block runs; gives the URL, with the port where the settings leave it open.

    At the end new posts are answered 503, those being taken get STOP_SECONDS. Raises SettingsError where the address
    or a certificate cannot be used.
    """
    settings = server.settings
    address = (settings.host, settings.port)
    context = tls(settings)
    async with served("receiver", settings, address, server.app, server.clock, context) as url:
        log.info("listening", extra={"url": url})
        try:
            yield url
        finally:
            server.stopping = True


@asynccontextmanager
async def listening_for_health(
    server: WebhookServer, settings: HealthSettings, address: tuple[str, int]
) -> AsyncIterator[str]:  # fmt: skip
    """Answer /livez, /readyz and /metrics while the block runs; gives the URL. Never TLS: it names no target and no
    secret. Raises SettingsError where the address cannot be used."""
    async with served("health", settings, address, server.health_app, server.clock) as url:
        log.info("listening for health", extra={"url": url})
        yield url


@asynccontextmanager
async def served(
    name: str, limits: Listener, address: tuple[str, int], app: Callable[..., web.Application], clock: Clock,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:  # fmt: skip
    """Serve an application while the block runs, with limits on its connections; gives the URL.

    Raises SettingsError where the address cannot be used."""
    connections = Connections(name, limits, clock, header_seconds=HEADER_SECONDS)
    runner = web.AppRunner(
        app(connections.in_use), access_log=None, keepalive_timeout=KEEPALIVE_SECONDS, auto_decompress=False,
        shutdown_timeout=STOP_SECONDS, lingering_time=LINGER_SECONDS, logger=server_logger(name, clock),
    )  # fmt: skip
    await runner.setup()
    try:
        if runner.server is None:
            raise SettingsError("the web application did not start")
        secured: dict[str, Any] = {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_SECONDS} if context else {}
        try:
            sockets = await connections.serve(runner.server, address, **secured)
        except OSError as error:
            raise SettingsError(f"{name}.listen: {address[0]}:{address[1]}: {error}") from error
        try:
            yield f"{'https' if context else 'http'}://{sockets.url_host}"
        finally:
            sockets.close()
    finally:
        await runner.cleanup()
