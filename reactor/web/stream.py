"""Live updates: server-sent events. Who reads slowly gets the newest state in one piece, or is let go."""

from __future__ import annotations

import asyncio

from aiohttp import web

from reactor.views.rows import stamp
from reactor.web.board import Board, framed

BEAT_SECONDS = 1.0
"""A stream without changes says so often that it lives: a page takes three missing beats for a lost stream."""
WRITE_SECONDS = 10.0
"""A viewer who has not read what was sent by then is let go; its page connects again."""


class LiveStream:
    """The streams of one process."""

    def __init__(self, board: Board, viewers_max: int) -> None:
        self._board = board
        self._viewers_max = viewers_max
        self.viewers = 0
        """Number of viewers that follow now."""
        self.ending = asyncio.Event()
        """Set when the process stops: streams end by themselves."""

    async def serve(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """Send the state, then each change. Ends when the viewer leaves, does not read, or the process stops."""
        if self.viewers >= self._viewers_max:
            raise web.HTTPServiceUnavailable(text=f"{self._viewers_max} viewers follow already: web.viewersMax")
        self.viewers += 1
        try:
            response.content_type = "text/event-stream"
            response.headers["X-Accel-Buffering"] = "no"
            await response.prepare(request)
            await self._follow(request, response)
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self.viewers -= 1
        return response

    async def _follow(self, request: web.Request, response: web.StreamResponse) -> None:
        board, problem = self._board, self._board.problem
        seen = board.batches.newest
        await _send(response, b"retry: 1000\n\n" + board.snapshot_frame())
        while not self.ending.is_set() and request.transport is not None:
            if await board.batches.more(seen, BEAT_SECONDS):
                batches, seen = board.batches.since(seen), board.batches.newest
                await _send(response, b"".join(batches) if batches is not None else board.snapshot_frame())
            if board.problem != problem or not await board.batches.more(seen, 0):
                problem = board.problem
                await _send(response, framed("beat", {"now": stamp(board.clock.now()), "problem": problem}))


async def _send(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(data)
