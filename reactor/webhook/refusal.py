"""Answers to refused requests: always `{"error": …}`, and the connection closed where the body was not read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, code: int, text: str, headers: Mapping[str, str] | None = None, *, limit: str = "") -> None:
        """`limit`: which one the request exceeds, if any."""
        super().__init__(f"{code} {text}")
        self.limit = limit
        self.code = code
        self.text = text
        self._headers = headers

    def response(self) -> web.Response:
        """Give it as JSON."""
        response = web.json_response({"error": self.text}, status=self.code, headers=self._headers)
        if self.code in (408, 413):
            response.force_close()  # what is left of the body is not read
        return response


@web.middleware
async def as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn aiohttp's own 404 and 405 into JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return web.json_response({"error": f"{error.status} {error.reason}"}, status=error.status, headers=headers)
