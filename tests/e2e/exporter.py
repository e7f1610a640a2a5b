"""An exporter on a loopback port whose metrics a test turns bad and good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class Exporter:
    """Exports `shop_up{service="…"}`, or another metric: 1 while the thing is well, 0 while it is not."""

    def __init__(self, *names: str, metric: str = "shop_up", label: str = "service") -> None:
        self.up = dict.fromkeys(names, True)
        self.address = ""
        """host:port, once it listens."""
        self.scrapes = 0
        self._metric, self._label = metric, label

    async def answer(self, _: web.BaseRequest) -> web.Response:
        """Answer any path with the metrics."""
        self.scrapes += 1
        lines = [f'{self._metric}{{{self._label}="{name}"}} {int(up)}' for name, up in self.up.items()]
        text = "\n".join([f"# TYPE {self._metric} gauge", *lines, ""])
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


@asynccontextmanager
async def exporting(*names: str, metric: str = "shop_up", label: str = "service") -> AsyncIterator[Exporter]:
    """Export while the block runs."""
    exporter = Exporter(*names, metric=metric, label=label)
    runner = web.ServerRunner(web.Server(exporter.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        exporter.address = "{}:{}".format(*runner.addresses[0][:2])
        yield exporter
    finally:
        await runner.cleanup()
