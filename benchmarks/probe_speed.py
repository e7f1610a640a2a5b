"""Time from the first bad answer to a probe to patched weights in the cluster, through the whole service, and back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from benchmarks.measure import Result, spread
from benchmarks.world import World, world

ROUTES = 10
ROUNDS = 30
BACKENDS = ("", "-west", "-central")
PROBE = """
- {{name: {name}, kind: HttpProbe, target: custom/{name}, url: "{url}/{name}", everySeconds: 0.25, timeoutSeconds: 0.25,
   failureThreshold: 1}}"""
RULE = """
- name: r{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  backends: [{backends}]"""


@dataclass(slots=True)
class Services:
    """An HTTP server with a path for each service: 200 while it is well, else 503."""

    url: str = ""
    bad: set[str] = field(default_factory=set)
    turned: dict[str, float] = field(default_factory=dict)
    """Time at which each service that was turned first answered otherwise."""

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one probe."""
        name = request.path.strip("/")
        self.turned.setdefault(name, time.perf_counter())
        return web.Response(status=503 if name in self.bad else 200)

    def turn(self, name: str, *, healthy: bool) -> None:
        """Set the health that a service shows from now on."""
        (self.bad.discard if healthy else self.bad.add)(name)
        self.turned.pop(name, None)


async def probe_to_patch() -> Result:
    """One service at a time, toleration and recovery 0. Before it moves, the reactor has the others looked at again."""
    away: list[float] = []
    home: list[float] = []
    async with _services() as services, world(ROUTES, _rules(services.url)) as w:
        await w.known(ROUTES, len(BACKENDS))
        for number in [*range(ROUTES)] * ROUNDS:
            away.append(await _moved(w, services, f"app{number}", healthy=False))
            home.append(await _moved(w, services, f"app{number}", healthy=True))
    figures = {"moves": len(away), **spread(away), "back": spread(home)}
    return Result("probe-to-patch", "HTTP 503 to a probe → patched TrafficSplit", figures, {"p99_ms": "< 250"})


async def _moved(w: World, services: Services, name: str, *, healthy: bool) -> float:
    """Give the seconds from the first answer that is otherwise to the write."""
    writes = w.moves.count
    services.turn(name, healthy=healthy)
    await w.moves.reach(writes + 1)
    return w.moves.last_at - services.turned[name]


def _rules(url: str) -> str:
    names = [[f"app{n}{end}" for end in BACKENDS] for n in range(ROUTES)]
    probes = "".join(PROBE.format(name=name, url=url) for some in names for name in some)
    rules = "".join(
        RULE.format(n=n, backends=", ".join(f"{{service: {name}, target: custom/{name}}}" for name in some))
        for n, some in enumerate(names)
    )
    return f"apiVersion: reactor/v1\nsources:{probes}\nrules:{rules}\n"


@asynccontextmanager
async def _services() -> AsyncIterator[Services]:
    services = Services()
    runner = web.ServerRunner(web.Server(services.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        services.url = "http://{}:{}".format(*runner.addresses[0][:2])
        yield services
    finally:
        await runner.cleanup()
