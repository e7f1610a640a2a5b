"""The HTTP server of the page: the API, the live stream, sign-in, and the files of the page, behind one gate."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bus.errors import BusError
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable, Terminal
from reactor.runtime.log_throttle import LogThrottle
from reactor.settings.server_settings import ClusterSettings
from reactor.settings.web_settings import Web
from reactor.web.api_document import document
from reactor.web.backtest_folder import BacktestFolder
from reactor.web.board import Board
from reactor.web.linked_approvals import LinkedApprovals
from reactor.web.orders import Orders
from reactor.web.page_access import COOKIE, Access, Denied, Viewer
from reactor.web.read_api import ReadApi
from reactor.web.request_body import asked
from reactor.web.stream import LiveStream
from reactor.web.token_reviews import TokenReviews
from reactor.webhook.auth import tls
from reactor.webhook.receiver import served

log = logging.getLogger(__name__)

STATIC = Path(__file__).with_name("static")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
BODY_BYTES = 16_384
PUBLIC = ("/", "/favicon.ico", "/api/v1/session", "/api/v1/openapi.json")
"""Answered without a token: the page itself holds no data, and people sign in on it."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()", "Cache-Control": "no-store",
}  # fmt: skip
VIEWER: web.RequestKey[Viewer] = web.RequestKey("viewer", Viewer)


class PageServer:
    """One application. `async with server.listening() as url`."""

    def __init__(
        self,
        settings: Web,
        board: Board,
        clock: Clock,
        *,
        clusters: Mapping[str, ClusterSettings],
        digest: Callable[[], str],
        reach: Callable[[str], Awaitable[KubeApi]] | None = None,
        backtests: BacktestFolder | None = None,
    ) -> None:
        """Raises SettingsError where a token is missing."""
        self.settings, self.board, self.clock = settings, board, clock
        self.access = Access(settings)
        self.live = LiveStream(board, settings.viewers_max)
        self._backtests = backtests or BacktestFolder(settings.backtests)
        self._reading = ReadApi(board, clock, clusters, digest, self._backtests)
        self._orders = Orders(board, clock, self.access, VIEWER)
        self._by_link = LinkedApprovals(board, clock, self.access, VIEWER)
        self._files = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in _files()}
        self._throttle = LogThrottle(clock)
        review = settings.token_review
        self._reviews = TokenReviews(review, reach, self.access, clock) if review is not None and reach else None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen while the block runs; gives the URL. Raises SettingsError where the address cannot be used."""
        address = (self.settings.host, self.settings.port)
        async with served("web", self.settings, address, self.app, self.clock, tls(self.settings)) as url:
            log.info("the page is served", extra={"url": url})
            try:
                yield url
            finally:
                self.live.ending.set()

    def app(self, *middlewares: Middleware) -> web.Application:
        """Give the application with its routes."""
        app = web.Application(client_max_size=BODY_BYTES, middlewares=[*middlewares, self._gate])
        app.add_routes(
            [
                *self._reading.routes(), *self._orders.routes(), *self._by_link.routes(),
                *self._backtests.routes(),
                web.get("/api/v1/events", self._events),
                web.get("/api/v1/session", self._session), web.post("/api/v1/session", self._sign_in),
                web.delete("/api/v1/session", self._sign_out), web.get("/api/v1/openapi.json", self._document),
                web.get("/", self._file), web.get("/favicon.ico", self._file), web.get("/static/{name:.+}", self._file),
            ]
        )  # fmt: skip
        return app

    @web.middleware
    async def _gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Host name, who asks, one shape for errors, and the headers that every answer has."""
        try:
            self.access.check_host(request.headers.get("Host"))
            if request.path not in PUBLIC and not request.path.startswith("/static/"):
                request[VIEWER] = await self._viewer(request)
            response = await handler(request)
        except Denied as error:
            if self._throttle((request.path, error.code)):
                extra = {"code": error.code, "reason": str(error), "peer": request.remote}
                log.warning("a request to the page is refused", extra=extra)
            response = _problem(error.code, str(error))
        except BusError as error:
            response = _problem(503, f"the bus does not answer: {error}")
        except (Retryable, Terminal) as error:
            response = _problem(503, f"the API server does not say whose token this is: {error}")
        except web.HTTPException as error:
            response = _problem(error.status, error.text or error.reason)
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    async def _viewer(self, request: web.Request) -> Viewer:
        if (named := self.access.by_proxy(request.headers, request.remote)) is not None:
            return named
        try:
            return self.access.viewer(request.headers, request.cookies.get(COOKIE), self.clock.now().timestamp())
        except Denied:
            scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
            if self._reviews is None or scheme.lower() != "bearer":
                raise
        return await self._reviews.viewer(token.strip())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self.live.serve(request, web.StreamResponse(headers=HEADERS))

    async def _session(self, request: web.Request) -> web.Response:
        try:
            viewer = await self._viewer(request)
        except Denied:
            return web.json_response({"signedIn": False, "open": self.access.open})
        return web.json_response(self._shown(viewer))

    def _shown(self, viewer: Viewer) -> dict[str, object]:
        return {
            "signedIn": bool(viewer.name) or self.access.open, "open": self.access.open, "name": viewer.name,
            "role": viewer.role, "csrf": viewer.csrf,
        }  # fmt: skip

    async def _sign_in(self, request: web.Request) -> web.Response:
        self.access.check_origin(request.headers)
        body = await asked(request)
        viewer = self.access.by_token(str(body.get("token", "")))
        now = self.clock.now().timestamp()
        session = self.access.session(viewer, now)
        response = web.json_response(self._shown(self.access.viewer({}, session, now)))
        response.set_cookie(
            COOKIE, session, max_age=int(self.settings.session_seconds), httponly=True, samesite="Strict", path="/",
            secure=self.access.secure,
        )  # fmt: skip
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        self.access.check_origin(request.headers)
        response = web.json_response({"signedIn": False, "open": self.access.open})
        response.del_cookie(COOKIE, path="/")
        return response

    async def _document(self, _: web.Request) -> web.Response:
        return web.json_response(document())

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name") or ("icon.svg" if request.path == "/favicon.ico" else "index.html")
        body = self._files.get(name)
        if body is None:
            raise web.HTTPNotFound(text="there is no such file")
        tag = hashlib.sha256(body).hexdigest()[:32]
        headers = {"Cache-Control": "no-cache", "ETag": f'"{tag}"'}
        if any(one.value == tag for one in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=TYPES[Path(name).suffix], charset="utf-8", headers=headers)


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)


def _files() -> list[Path]:
    return [path for path in sorted(STATIC.rglob("*")) if path.suffix in TYPES]
