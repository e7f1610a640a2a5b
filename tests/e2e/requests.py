"""Services that answer requests, clients that send them by a route's weights, and the counters of what came of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from tests.e2e.shop import Shop

PAUSE = 0.02
"""Between two requests."""


@dataclass
class Served:
    """A service on a loopback port, of whose requests a share fails."""

    name: str
    fails_every: int = 0
    """Each so manieth request is answered 500; 0: none."""
    address: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request; `/healthz` is always well: a probe sees a part of the truth."""
        if request.path == "/healthz":
            return web.Response(text="ok")
        self.counts["all"] += 1
        if self.fails_every and self.counts["all"] % self.fails_every == 0:
            self.counts["bad"] += 1
            return web.Response(status=500)
        return web.Response(text="ok")


@dataclass
class Traffic:
    """All services, and who sends to them."""

    services: dict[str, Served]
    metrics: str = ""
    """host:port of the counters."""

    async def counters(self, _: web.BaseRequest) -> web.Response:
        """The counters of all services, as an exporter gives them."""
        lines = ["# TYPE requests_total counter", "# TYPE errors_total counter"]
        for name, service in self.services.items():
            lines.append(f'requests_total{{service="{name}"}} {service.counts["all"]}')
            lines.append(f'errors_total{{service="{name}"}} {service.counts["bad"]}')
        return web.Response(text="\n".join([*lines, ""]), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def send(self, shop: Shop, split: str) -> None:
        """Send requests by the weights that the split has at that moment, until cancelled."""
        dice = random.Random(7)
        async with aiohttp.ClientSession() as session:
            while True:
                found = shop.find(split)
                backends = found["spec"]["backends"] if found else []
                if any(one["weight"] for one in backends):
                    names, weights = [one["service"] for one in backends], [one["weight"] for one in backends]
                    service = self.services[dice.choices(names, weights)[0]]
                    async with session.get(f"http://{service.address}/") as answer:
                        await answer.read()
                await asyncio.sleep(PAUSE)


@asynccontextmanager
async def serving(*names: str) -> AsyncIterator[Traffic]:
    """Serve while the block runs."""
    traffic = Traffic({name: Served(name) for name in names})
    runners = []
    for service in (*traffic.services.values(), None):
        handler = service.answer if service is not None else traffic.counters
        runner = web.ServerRunner(web.Server(handler, access_log=None), shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = "{}:{}".format(*runner.addresses[0][:2])
        if service is not None:
            service.address = address
        else:
            traffic.metrics = address
    try:
        yield traffic
    finally:
        for runner in runners:
            await runner.cleanup()
