"""Routes for liveness, readiness and metrics. Open to all: they name no target and no secret."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from bus.errors import BusError
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.threads import Threads

ANSWER_SECONDS = 3.0
METRICS = Threads("metrics", 1)
"""The text of a thousand rules takes 50 ms or more: deciding goes on meanwhile."""
KEPT_SECONDS = 1.0  # an answer counts for so long: it costs the bus a write, and any client may ask

Ready = Callable[[], Awaitable[Sequence[str]]]
"""Gives why the process is not ready; empty: it is."""


class HealthRoutes:
    """The routes /livez, /readyz and /metrics."""

    def __init__(self, unready: Callable[[], str], ready: Ready, clock: Clock) -> None:
        """`unready`: a reason that is known without asking others, or an empty text."""
        self._unready = unready
        self._ready = ready
        self._clock = clock
        self._last: tuple[float, tuple[str, ...]] | None = None

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        return [web.get("/livez", self._livez), web.get("/readyz", self._readyz), web.get("/metrics", self._metrics)]

    async def _livez(self, _: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def _readyz(self, _: web.Request) -> web.Response:
        reasons = await self._reasons()
        if not reasons:
            return web.json_response({"ready": True})
        return web.json_response({"error": "not ready", "reasons": reasons}, status=503)

    async def _reasons(self) -> tuple[str, ...]:
        if reason := self._unready():
            return (reason,)
        now = self._clock.monotonic()
        if self._last is None or now - self._last[0] >= KEPT_SECONDS:
            self._last = now, await self._ask()
        return self._last[1]

    async def _ask(self) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return tuple(await self._ready())
        except TimeoutError:
            return (f"no answer within {ANSWER_SECONDS:g} s",)
        except BusError as error:
            return (f"bus: {error}",)

    async def _metrics(self, request: web.Request) -> web.Response:
        """All metrics, or those that `name[]` names, as with every client of Prometheus."""
        names = request.query.getall("name[]", [])
        registry = telemetry.REGISTRY.restricted_registry(names) if names else telemetry.REGISTRY
        text = await METRICS.run(partial(generate_latest, registry))
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})
