"""A small gateway: real requests to real backends, by the weights of a route that it reads from the Kubernetes API.

Prints one line of JSON for each second (see tally.py) and serves nothing: it is there to see what a user would see.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence

import aiohttp

from reactor.demo.balance import Balance
from reactor.demo.follow import RouteName, follow
from reactor.demo.lifeline import end_with
from reactor.demo.tally import RequestCount, TrafficSecond

REQUEST_SECONDS = 2.0
IN_FLIGHT_MAX = 100
"""Backends that hang make the gateway slower; they do not make it grow."""


class Gateway:
    """Sends requests, and counts what became of them."""

    def __init__(self, session: aiohttp.ClientSession, backends: Mapping[str, str]) -> None:
        """`backends`: the URL of each service."""
        self._session = session
        self._backends = backends
        self._weights: Mapping[str, int] | None = None
        self._balance = Balance({})
        self._ok: dict[str, int] = defaultdict(int)
        self._failed: dict[str, int] = defaultdict(int)
        self._failures: tuple[float, float] | None = None

    async def follow(self, api: str, route: RouteName) -> None:
        """Keep the weights as they are in the cluster, without end."""
        async for weights in follow(self._session, api, route):
            self._weights, self._balance = weights, Balance(weights)

    async def send(self, rate: float) -> None:
        """Send this many requests a second, without end."""
        clock = asyncio.get_running_loop().time
        slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        due = clock()
        async with asyncio.TaskGroup() as requests:
            while True:
                due = max(due + 1 / rate, clock() - 1)  # what was missed in a pause is not made up for in a burst
                await asyncio.sleep(due - clock())
                if self._weights is None:
                    continue
                await slots.acquire()
                requests.create_task(self.request()).add_done_callback(lambda _: slots.release())

    async def request(self) -> None:
        """Send one request to the backend whose turn it is, and count its answer."""
        sent_at = asyncio.get_running_loop().time()
        service = self._balance.pick()
        if service is not None and await self._answers(service):
            self._ok[service] += 1
            return
        self._failed[service or ""] += 1
        first, last = self._failures or (sent_at, sent_at)
        self._failures = min(first, sent_at), max(last, sent_at)

    async def _answers(self, service: str) -> bool:
        url = self._backends.get(service)
        if url is None:
            return False  # the route names a service that does not run
        try:
            async with self._session.get(url) as answer:
                await answer.read()
                return answer.ok
        except (aiohttp.ClientError, TimeoutError):
            return False

    def take(self, at: float) -> TrafficSecond:
        """Give what was counted since the last time, and begin again."""
        names = {**dict.fromkeys(self._backends), **self._ok, **self._failed}
        counts = {name: RequestCount(self._ok[name], self._failed[name]) for name in names}
        second = TrafficSecond(at, self._weights or {}, counts, self._failures)
        self._ok.clear()
        self._failed.clear()
        self._failures = None
        return second

    async def tell(self) -> None:
        """Print each second when it is over, without end."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            due = max(due + 1, clock())
            await asyncio.sleep(due - clock())
            print(self.take(clock()).to_json(), flush=True)  # noqa: T201 - the process that started us reads it


async def _run(given: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS)) as session:
        gateway = Gateway(session, dict(given.backend))
        work = [gateway.follow(given.api, given.route), gateway.send(given.rate), gateway.tell(), stop.wait()]
        tasks = [asyncio.ensure_future(one) for one in work]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            task.result()


def _backend(text: str) -> tuple[str, str]:
    name, _, url = text.partition("=")
    if not name or not url:
        raise argparse.ArgumentTypeError(f"{text!r} is not <service>=<url>")
    return name, url


def main(argv: Sequence[str] | None = None) -> None:
    """Send traffic until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m reactor.demo.gateway", description="Requests by a route's weights."
    )
    parser.add_argument("--api", required=True, help="URL of the Kubernetes API")
    parser.add_argument("--route", required=True, type=RouteName.parse, help="<kind>/<namespace>/<name>")
    parser.add_argument("--backend", action="append", default=[], type=_backend, help="<service>=<url>; one for each")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--parent", type=int, help="end when this process ends, which must be the one that starts us")
    given = parser.parse_args(argv)
    if given.parent is not None:
        end_with(given.parent)
    logging.basicConfig(level="INFO", format="%(asctime)s %(message)s")
    asyncio.run(_run(given))


if __name__ == "__main__":
    main()
