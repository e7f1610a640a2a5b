"""Range queries: /api/v1/query_range, one chunk at a time, read while it arrives.

The instant queries of the live service go through prometheus-api-client, which holds a whole answer as Python objects:
ten times its text. A month of 200 series would not fit into memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import stamina

from reactor.clients.credentials import authorization, proxy_of, trust
from reactor.clients.instant_queries import QueryFailed, QueryRefused
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.decode import NoAnswer, series
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.value_runs import ChunkResult, series_of

RANGE_SECONDS = 120.0
"""Least timeout of a chunk: a day of a query costs more than its last moment. Prometheus's own limit."""
TRIES = 3
_PIECE_BYTES = 1 << 20
_ERROR_BYTES = 4096
_MENDABLE = frozenset({400, 401, 403, 404, 405, 413, 414, 422})


class Ranges:
    """Range queries of one Prometheus; `async with` keeps its connections."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        """`name`: as the settings call it, for messages."""
        self.name = name
        self.url = str(endpoint.url).rstrip("/")
        self._where = f"prometheus.{name}"
        self._endpoint = endpoint
        self._near = endpoint.url.host in ("127.0.0.1", "[::1]", "localhost")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=max(self._endpoint.timeout_seconds, RANGE_SECONDS))
        connector = aiohttp.TCPConnector(ssl=trust(self._where, self._endpoint)())
        self._session = aiohttp.ClientSession(
            timeout=timeout, connector=connector, read_bufsize=_PIECE_BYTES, proxy=proxy_of(self._endpoint)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def fetch(self, promql: str, chunk: Chunk) -> ChunkResult:
        """Give the series of one chunk; what may pass is tried again. Raises QueryFailed or QueryRefused."""
        async for attempt in stamina.retry_context(
            on=QueryFailed, attempts=TRIES, wait_initial=0.2, wait_max=2.0, wait_jitter=0.1
        ):
            with attempt:
                return await self._fetch(promql, chunk)
        raise AssertionError("stamina ends with an answer or an error")

    async def _fetch(self, promql: str, chunk: Chunk) -> ChunkResult:
        if self._session is None:
            raise AssertionError("enter `async with` first")
        form = {
            "query": promql, "start": _seconds(chunk.first_ms), "end": _seconds(chunk.last_ms),
            "step": _seconds(chunk.step_ms), "limit": str(self._endpoint.max_series + 1), "partial_response": "false",
        }  # fmt: skip
        try:
            # A POST, as a query may be longer than a URL. A redirect is no answer, and credentials would go along.
            async with self._session.post(
                f"{self.url}/api/v1/query_range", data=form, headers=self._headers(), allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise await self._refusal(response)
                return await self._read(response, chunk)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise QueryFailed(f"{self._where} ({self.url}): {str(error) or type(error).__name__}") from error

    async def _read(self, response: aiohttp.ClientResponse, chunk: Chunk) -> ChunkResult:
        out = []
        samples = 0
        try:
            async for entry in series(response.content.iter_chunked(_PIECE_BYTES)):
                pairs = self._pairs(entry)
                samples += len(pairs)
                out.append(series_of(_labels(entry), pairs, chunk))
                if len(out) > self._endpoint.max_series:
                    raise QueryRefused(
                        f"{self._where}: the result has more than {self._endpoint.max_series} series: aggregate the "
                        f"query, or raise {self._where}.maxSeries"
                    )
        except NoAnswer as error:
            raise QueryFailed(f"{self._where} ({self.url}): {error}") from error
        except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
            raise QueryFailed(f"{self._where} ({self.url}): the answer is not Prometheus's JSON: {error!r}") from error
        return ChunkResult(tuple(out), samples)

    def _pairs(self, entry: Mapping[str, Any]) -> list[Any]:
        if "histograms" in entry:
            raise QueryRefused(f"{self._where}: the query gives histograms, not numbers")
        pairs: list[Any] = entry["values"]
        return pairs

    async def _refusal(self, response: aiohttp.ClientResponse) -> QueryFailed | QueryRefused:
        said = (await response.content.read(_ERROR_BYTES)).decode("utf-8", "replace")
        refusal = QueryRefused if response.status in _MENDABLE or response.status // 100 == 3 else QueryFailed
        return refusal(f"{self._where} ({self.url}): HTTP {response.status}: {_words(said)}")

    def _headers(self) -> dict[str, str]:
        try:
            header = authorization(self._where, self._endpoint)
        except SettingsError as error:
            raise QueryRefused(str(error)) from error
        headers = {"Authorization": header} if header else {}
        # Compressing costs Prometheus more than it saves where nothing has to travel.
        return headers | ({"Accept-Encoding": "identity"} if self._near else {})


def _labels(entry: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in entry["metric"].items()}


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}"


def _words(said: str) -> str:
    """Error message of Prometheus, out of its JSON if it is JSON."""
    try:
        error = json.loads(said)["error"]
    except (ValueError, KeyError, TypeError):
        error = said
    return " ".join(str(error).split())[:500]
