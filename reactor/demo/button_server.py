"""The page with the demo's buttons: a server of its own beside the reactor's page, which has no such routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler

from reactor.demo.errors import DemoError
from reactor.demo.mischief import BUTTONS, Mischief
from reactor.web.page_server import HEADERS, STATIC

FOLDER = Path(__file__).with_name("button_page")
FILES = {
    "/": (FOLDER / "buttons.html", "text/html"), "/buttons.js": (FOLDER / "buttons.js", "text/javascript"),
    "/style.css": (STATIC / "style.css", "text/css"), "/favicon.ico": (STATIC / "icon.svg", "image/svg+xml"),
}  # fmt: skip
STOP_SECONDS = 0.5


class ButtonServer:
    """HTTP server of the demo's buttons. Answers on loopback only."""

    def __init__(self, mischief: Mischief, page: str) -> None:
        """`page`: the URL of the reactor's page."""
        self._mischief, self._page = mischief, page

    def app(self) -> web.Application:
        """Give the application with its routes."""
        app = web.Application(middlewares=[self._gate], client_max_size=1024)
        app.add_routes([*(web.get(path, self._file) for path in FILES), web.get("/api/state", self._state),
                        web.post("/api/{button}", self._press)])  # fmt: skip
        return app

    @web.middleware
    async def _gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A foreign site may neither give its name to this address nor press a button."""
        host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        if host.rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            response: web.StreamResponse = _problem(421, "this host name is not the demo's")
        elif request.method == "POST" and (
            origin is None or urlsplit(origin).netloc != host or "X-Demo" not in request.headers
        ):
            response = _problem(403, "the request comes from another site")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = _problem(error.status, error.reason)
        response.headers.update(HEADERS)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        file, kind = FILES[request.path]
        return web.Response(body=file.read_bytes(), content_type=kind, charset="utf-8")

    async def _state(self, _: web.Request) -> web.Response:
        buttons = [{"name": one.name, "title": one.title, "does": one.does, "watch": one.watch} for one in BUTTONS]
        state = {"page": self._page, "buttons": buttons, "traffic": self._mischief.traffic()}
        return web.json_response({**state, "broken": self._mischief.broken})

    async def _press(self, request: web.Request) -> web.Response:
        name = request.match_info["button"]
        if name not in {one.name for one in BUTTONS}:
            raise web.HTTPNotFound
        try:
            await self._mischief.press(name)
        except (DemoError, aiohttp.ClientError, OSError) as error:
            return _problem(500, f"{type(error).__name__}: {error}")
        return web.json_response({"pressed": name})


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)


@asynccontextmanager
async def buttons(mischief: Mischief, page: str) -> AsyncIterator[str]:
    """Serve the buttons while the block runs; gives the URL."""
    runner = web.AppRunner(ButtonServer(mischief, page).app(), access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()
        await mischief.wake()
        await mischief.second.kill()
