"""A Prometheus on loopback that answers range queries from what a test says, within Prometheus's own limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

POINTS_MAX = 11_000
"""As Prometheus: more points of a series are refused."""

Value = Callable[[float], float | None]
"""Second to value; None: no series then."""


class Recorded:
    """`says[query]` holds (labels, value) for each series."""

    def __init__(self) -> None:
        self.says: dict[str, list[tuple[Mapping[str, str], Value]]] = {}
        self.asked: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[], web.Response] | None = None
        """Instead of an answer from `says`."""
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.asked.append(form)
        self.headers.append(dict(request.headers))
        if self.answer is not None:
            return self.answer()
        begin, end, step = (float(form[key]) for key in ("start", "end", "step"))
        count = round((end - begin) / step) + 1
        if count > POINTS_MAX:
            return web.json_response({"status": "error", "error": "exceeded maximum resolution"}, status=400)
        seconds = [round(begin + number * step, 3) for number in range(count)]
        result = [self._series(labels, value, seconds) for labels, value in self.says.get(form["query"], [])]
        data = {"resultType": "matrix", "result": [one for one in result if one["values"]]}
        return web.json_response({"status": "success", "data": data})

    def _series(self, labels: Mapping[str, str], value: Value, seconds: list[float]) -> dict[str, Any]:
        found = [(second, value(second)) for second in seconds]
        return {"metric": dict(labels), "values": [[second, str(one)] for second, one in found if one is not None]}


@asynccontextmanager
async def recorded() -> AsyncIterator[Recorded]:
    """Answer while the block runs."""
    server = Recorded()
    runner = web.ServerRunner(web.Server(server.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = "http://{}:{}".format(*runner.addresses[0][:2])
        yield server
    finally:
        await runner.cleanup()


def within(*spans: tuple[float, float], there: float = 1.0) -> Value:
    """There during these spans, from and up to without; not there otherwise."""
    return lambda second: there if any(begin <= second < end for begin, end in spans) else None
