"""Services that answer requests, clients that send them by a route's weights, and the counters of the results."""

from __future__ import annotations

import asyncio
import contextlib
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
        return web.Response(text=self.name)


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
                service = self.services[_chosen(shop, split, dice)]
                async with session.get(f"http://{service.address}/") as answer:
                    await answer.read()
                await asyncio.sleep(PAUSE)

    @property
    def counts(self) -> Counter[str]:
        """All requests, and the bad ones, of all services together."""
        return sum((service.counts for service in self.services.values()), Counter[str]())

    async def burst(self, shop: Shop, split: str, requests: int, *, at_once: int = 4) -> Counter[str]:
        """Send so many as fast as they are answered, by the current weights; give who has answered how many.

        Ends before where the weights change.
        """
        dice, left, answered, stands = random.Random(7), iter(range(requests)), Counter[str](), _weights(shop, split)

        async def client() -> None:
            with contextlib.ExitStack() as open_ones:
                streams: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
                for _ in left:
                    if _weights(shop, split) != stands:
                        return
                    name = dice.choices([*stands], [*stands.values()])[0]
                    if name not in streams:
                        host, port = self.services[name].address.split(":")
                        streams[name] = await asyncio.open_connection(host, int(port))
                        open_ones.callback(streams[name][1].close)
                    answered[await _ask(*streams[name])] += 1

        async with asyncio.TaskGroup() as clients:
            for _ in range(at_once):
                clients.create_task(client())
        return answered


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """One request on a connection that stays open: a session of a library takes several times as long."""
    writer.write(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    return (await reader.readexactly(length)).decode()


def _weights(shop: Shop, split: str) -> dict[str, int]:
    found = shop.find(split)
    assert found is not None
    return {one["service"]: one["weight"] for one in found["spec"]["backends"]}


def _chosen(shop: Shop, split: str, dice: random.Random) -> str:
    weights = _weights(shop, split)
    return dice.choices([*weights], [*weights.values()])[0]


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
