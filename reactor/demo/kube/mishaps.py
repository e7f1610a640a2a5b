"""Effects of faults on a request before, instead of and after its being carried out."""

from __future__ import annotations

import asyncio

from aiohttp import web

from reactor.demo.kube.broken_connection import reset
from reactor.demo.kube.call import ApiRequest
from reactor.demo.kube.errors import StatusError, forbidden
from reactor.demo.kube.faults import Delay, FaultEffect, Forbid, Hang, Html, LoseAnswer, Reset, StatusFault
from reactor.demo.kube.objects import JsonObject, encode

_PAGE = "<html>\n<head><title>{0} Bad Gateway</title></head>\n<body><h1>{0} Bad Gateway</h1></body>\n</html>\n"
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


def answer_json(body: bytes, status: int = 200, headers: JsonObject | None = None) -> web.Response:
    """Give an answer from JSON that is written already."""
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def refused(error: StatusError) -> web.Response:
    """Give the answer to a refused request."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return answer_json(encode(error.status()), error.code, headers)


async def instead(
    effects: list[FaultEffect], call: ApiRequest | None, request: web.BaseRequest
) -> web.StreamResponse | None:
    """Give the answer of a fault that keeps the request from being carried out."""
    for effect in effects:
        match effect:
            case StatusFault(status=status, retry_after=after):
                await wait(effects)
                return refused(StatusError(status, _REASONS.get(status, ""), "a fault on order", retry_after=after))
            case Forbid() if call is not None:
                return refused(forbidden(call.verb, call.resource, call.subresource, call.namespace, call.name))
            case Html(status=status):
                return web.Response(text=_PAGE.format(status), status=status, content_type="text/html")
            case Hang():
                await asyncio.get_running_loop().create_future()
            case Reset():
                reset(request)
                return web.Response()
            case _:
                continue
    return None


async def wait(effects: list[FaultEffect], *, late: bool = False) -> None:
    seconds = sum(one.seconds for one in effects if isinstance(one, Delay) and one.answered_late is late)
    if seconds:
        await asyncio.sleep(seconds)


def lost(effects: list[FaultEffect], request: web.BaseRequest) -> web.Response | None:
    if not any(isinstance(one, LoseAnswer) for one in effects):
        return None
    reset(request)
    return web.Response()
