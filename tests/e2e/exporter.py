"""An exporter on a loopback port whose metrics a test turns bad and good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class Exporter:
    """Exports `shop_up{service="…"}`: 1 while the service is well, 0 while it is not."""

    def __init__(self, *services: str) -> None:
        self.up = dict.fromkeys(services, True)
        self.address = ""
        """host:port, once it listens."""
        self.scrapes = 0

    async def answer(self, _: web.BaseRequest) -> web.Response:
        """Answer any path with the metrics."""
        self.scrapes += 1
        lines = [f'shop_up{{service="{service}"}} {int(up)}' for service, up in self.up.items()]
        text = "\n".join(["# TYPE shop_up gauge", *lines, ""])
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


@asynccontextmanager
async def exporting(*services: str) -> AsyncIterator[Exporter]:
    """Export while the block runs."""
    exporter = Exporter(*services)
    runner = web.ServerRunner(web.Server(exporter.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        exporter.address = "{}:{}".format(*runner.addresses[0][:2])
        yield exporter
    finally:
        await runner.cleanup()
