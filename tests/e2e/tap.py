"""Proxy between Alertmanager and the reactor: passes each post on unchanged, and records it with its time.

So a test knows from another witness than the reactor itself that a resolved arrived, and when a firing did.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

HOP_BY_HOP = frozenset({"host", "content-length", "connection"})


@dataclass(frozen=True, slots=True)
class Post:
    """One post that was passed on."""

    at: float
    """Time at which it came, on the event loop's clock."""
    alerts: tuple[tuple[str, str], ...]
    """Label `service` and status of each alert."""
    code: int
    """Status that the reactor answered; 502: no answer."""


class Tap:
    """Forwards posts to wherever the reactor listens at the moment."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.url = ""
        """URL on which it listens itself."""
        self.forwards_to = ""
        self.posts: list[Post] = []
        self._session = session

    def taken(self, service: str, status: str, *, after: float = 0) -> Post | None:
        """The first post after this moment that told of the service so, and was answered 200."""
        wanted = (service, status)
        return next((one for one in self.posts if one.at > after and one.code == 200 and wanted in one.alerts), None)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Pass a post on, and its answer back."""
        at = asyncio.get_running_loop().time()
        raw = await request.read()
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        try:
            async with self._session.post(self.forwards_to + request.path, data=raw, headers=headers) as answer:
                code, text = answer.status, await answer.text()
        except aiohttp.ClientConnectionError as error:
            code, text = 502, str(error)
        told: list[dict[str, Any]] = json.loads(raw)["alerts"]
        alerts = tuple((alert["labels"].get("service", ""), alert["status"]) for alert in told)
        self.posts.append(Post(at, alerts, code))
        return web.Response(status=code, text=text)


@asynccontextmanager
async def tapping() -> AsyncIterator[Tap]:
    """Listen while the block runs."""
    async with aiohttp.ClientSession() as session:
        tap = Tap(session)
        runner = web.ServerRunner(web.Server(tap.answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            tap.url = "http://{}:{}".format(*runner.addresses[0][:2])
            yield tap
        finally:
            await runner.cleanup()
