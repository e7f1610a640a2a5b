"""The body of a request that changes something: one small JSON object."""

from __future__ import annotations

import asyncio

from aiohttp import web

from reactor.web.page_access import Denied


async def asked(request: web.Request) -> dict[str, object]:
    """Give the JSON object of a request. Raises Denied."""
    if request.content_type != "application/json":
        raise Denied(415, "Content-Type must be application/json")
    try:
        body = await request.json()
    except (ValueError, RecursionError, asyncio.IncompleteReadError):
        raise Denied(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Denied(400, "the body is not a JSON object")
    return body
