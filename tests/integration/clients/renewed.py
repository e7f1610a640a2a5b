"""An HTTPS server whose certificate, and the CA that signed it, are renewed while it runs."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from reactor.runtime.certificates import Certificates, serving
from tests.integration.bus.authority import certificates


@asynccontextmanager
async def https(handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], folder: Path) -> AsyncIterator[str]:
    """Serve with the certificates in this folder, made now and read again when they change; give the URL."""
    certificates(folder)
    certificate, key = folder / "server.pem", folder / "server.key"

    def context() -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.load_cert_chain(certificate, key)
        return made

    # Each request on a connection of its own, as after a while without any.
    runner = web.ServerRunner(web.Server(handle), keepalive_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(
            runner, "127.0.0.1", 0, ssl_context=serving(Certificates(context, [certificate, key]))
        ).start()
        yield "https://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()
