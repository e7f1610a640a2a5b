"""A small HTTP service to watch and to break: `python -m reactor.demo.service --port 8080 --name checkout`.

GET / and GET /healthz answer 200, or whatever it was told to break with; POST /break?status=503 and POST /heal tell it.
With percent=30 only so many answers are broken, and with seconds=0.3 each takes so long.
GET /metrics always answers: a service that is broken can still be scraped.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from reactor.demo.lifeline import end_with

SECONDS_MAX = 10.0
STOP_SECONDS = 1.0  # requests are short; a client that holds a connection open is not waited for


class Service:
    """A service that can be broken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = 200
        """Status of the answers to / and /healthz."""
        self._percent = 100
        """Percent of the answers with that status; the others are 200."""
        self._seconds = 0.0
        """Seconds that each answer takes."""
        self._answered = 0
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "http_requests", "Requests by path and answer.", ["service", "path", "code"], registry=self._registry
        )
        # Not `up`: Prometheus makes a series of that name itself, for whether the scrape succeeded.
        healthy = Gauge("service_healthy", "1 while the service is not broken.", ["service"], registry=self._registry)
        healthy.labels(name).set_function(lambda: float(self.status == 200))

    def app(self) -> web.Application:
        """Give the application with its routes."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/", self._answer),
                web.get("/healthz", self._answer),
                web.get("/metrics", self._metrics),
                web.post("/break", self._break),
                web.post("/heal", self._heal),
            ]
        )
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self._seconds)
        self._answered += 1
        # Spread evenly: of 100 answers exactly so many are broken.
        broken = self._answered * self._percent % 100 < self._percent
        status = self.status if broken else 200
        self._requests.labels(self.name, request.path, str(status)).inc()
        return web.json_response({"service": self.name, "healthy": status == 200}, status=status)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _break(self, request: web.Request) -> web.Response:
        text = request.query.get("status", "503")
        if not (text.isascii() and text.isdecimal() and 400 <= int(text) <= 599):
            return web.json_response({"error": f"status: 400 to 599, got {text!r}"}, status=400)
        percent, seconds = _number(request, "percent", 100), _number(request, "seconds", 0)
        if percent is None or seconds is None or percent > 100 or seconds > SECONDS_MAX:
            return web.json_response({"error": f"percent: 0 to 100, seconds: 0 to {SECONDS_MAX:g}"}, status=400)
        self.status, self._percent, self._seconds = int(text), int(percent), seconds
        return web.json_response({"service": self.name, "answers": self.status})

    async def _heal(self, _: web.Request) -> web.Response:
        self.status, self._percent, self._seconds = 200, 100, 0.0
        return web.json_response({"service": self.name, "answers": self.status})


def _number(request: web.Request, name: str, default: float) -> float | None:
    """Give a number of the query; None where it is none, or negative."""
    text = request.query.get(name, str(default))
    whole, _, rest = text.partition(".")
    digits = whole + rest
    return float(text) if digits.isascii() and digits.isdecimal() else None


@contextlib.asynccontextmanager
async def serving(service: Service, host: str, port: int) -> AsyncIterator[str]:
    """Serve while the block runs; gives the URL. Raises OSError where the address is taken."""
    runner = web.AppRunner(service.app(), access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _run(name: str, host: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(Service(name), host, port) as url:
        print(url, flush=True)  # noqa: T201 - the process that started us on port 0 reads where we are
        await stop.wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Prints its URL as its first line."""
    parser = argparse.ArgumentParser(prog="python -m reactor.demo.service", description="A service to watch and break.")
    parser.add_argument("--name", default="checkout", help="what it calls itself")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0 takes a free one")
    parser.add_argument("--parent", type=int, help="end when this process ends, which must be the one that starts us")
    given = parser.parse_args(argv)
    if given.parent is not None:
        end_with(given.parent)
    try:
        asyncio.run(_run(given.name, given.host, given.port))
    except OSError as error:
        parser.exit(1, f"{parser.prog}: {given.host}:{given.port}: {error}\n")


if __name__ == "__main__":
    main()
