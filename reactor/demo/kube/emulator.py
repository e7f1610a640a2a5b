"""The emulator: several clusters in this process, served over HTTP on loopback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote

from aiohttp import web

from reactor.demo.kube.cluster import EmulatedCluster
from reactor.demo.kube.crds import shipped
from reactor.demo.kube.errors import StatusError, no_such_path
from reactor.demo.kube.http import serve
from reactor.demo.kube.mishaps import refused
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.writelog import WriteLog

HISTORY = 10_000  # changes of one kind that watches and old reads can go back
BOOKMARK_SECONDS = 60.0  # upstream: about once a minute
VERSION = "1.34"
_LOOPBACK = "127.0.0.1"
_SHUTDOWN_SECONDS = 0.1  # open requests are faults or watches; no client waits for them

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Emulator:
    """Kubernetes API servers for the demo and for tests.

        async with Emulator(clock=Clock().now) as sim:
            east = sim.cluster("east")
            east.create({...})
            client = connect(sim.url("east"))

    `clock` gives the wall time that objects are stamped with.
    """

    def __init__(self, *, clock: Callable[[], datetime], port: int = 0) -> None:
        self.clusters: dict[str, EmulatedCluster] = {}
        self.writes = WriteLog()
        """Log of the writes to all clusters, in order."""
        self._clock = clock
        self._port = port
        self._shared: web.ServerRunner | None = None
        self._runners: list[web.ServerRunner] = []
        self._own_urls: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self._shared, self._port = await self._listen(self._shared_handler, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop serving; open watches are cut."""
        for cluster in self.clusters.values():
            cluster.cut_watches()
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    def cluster(
        self,
        name: str = "main",
        *,
        crds: Sequence[JsonObject] | None = None,
        version: str = VERSION,
        token: str = "",
        history: int = HISTORY,
        bookmark_seconds: float = BOOKMARK_SECONDS,
    ) -> EmulatedCluster:
        """Give the cluster of this name, made on first mention with these settings.

        `crds`: the custom kinds it serves, by default all kinds of routes. `token`: the bearer token
        it asks for; none by default. `history`: changes per kind it remembers.
        """
        known = self.clusters.get(name)
        if known is None:
            known = self.clusters[name] = EmulatedCluster(
                name,
                now=self._clock,
                log=self.writes,
                crds=shipped() if crds is None else crds,
                version=version,
                token=token,
                history=history,
                bookmark_seconds=bookmark_seconds,
            )
        return known

    def url(self, name: str = "main") -> str:
        """Give a cluster's base URL: a path on the shared port, or its own port once it has one."""
        return self._own_urls.get(name) or f"http://{_LOOPBACK}:{self._port}/c/{quote(name, safe='')}"

    async def own_port(self, name: str = "main") -> str:
        """Serve a cluster on a port of its own as well, and give that URL."""

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            return await self._answer(self.clusters.get(name), request, request.path)

        _, port = await self._listen(handler, 0)
        self._own_urls[name] = f"http://{_LOOPBACK}:{port}"
        return self._own_urls[name]

    async def _listen(self, handler: _Handler, port: int) -> tuple[web.ServerRunner, int]:
        # Cancelling a request whose client has left is how a watch learns of it.
        server = web.Server(handler, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, _LOOPBACK, port).start()
        return runner, int(runner.addresses[-1][1])

    async def _shared_handler(self, request: web.BaseRequest) -> web.StreamResponse:
        _, marker, rest = request.path.partition("/c/")
        name, _, path = rest.partition("/")
        return await self._answer(self.clusters.get(unquote(name)) if marker else None, request, f"/{path}")

    async def _answer(self, cluster: EmulatedCluster | None, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if cluster is None:
            return refused(no_such_path())
        try:
            return await serve(cluster, request, path)
        except StatusError as refusal:
            return refused(refusal)
