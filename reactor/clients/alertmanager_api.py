"""Reads the alerts of an Alertmanager: for finding what its webhook never told, a lost resolved or a lost firing."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from reactor.clients.credentials import Trust, authorization, proxy_of, trust
from reactor.runtime.errors import Retryable, Terminal
from reactor.settings.server_settings import Endpoint

_ALL = {"active": "true", "silenced": "true", "inhibited": "true", "unprocessed": "true"}
BYTES_PER_ALERT = 4096
"""Bytes for each alert of an answer, unpacked, where maxBytes is not set; an alert with long annotations has some
2,000."""
_EXCERPT_BYTES = 300
_CHUNK_BYTES = 64 << 10
_MENDABLE = frozenset({400, 401, 403, 404, 405})
SLICE = 100
"""Alerts read between two pauses: 20,000 at once would hold the event loop for a quarter of a second."""
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


class AlertsUnavailable(Retryable):
    """Alertmanager gave no answer, or none that can be used."""


class AlertsRefused(Terminal):
    """The address or the credentials have to be mended."""


class Alertmanager:
    """One Alertmanager of the settings."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._where = f"alertmanager.{name}"
        self._endpoint = endpoint
        self._session: aiohttp.ClientSession | None = None
        self._trusted: Trust | None = None

    async def alerts(self) -> list[dict[str, Any]]:
        """Give all alerts, as its API v2 describes them. Raises AlertsUnavailable, AlertsRefused or SettingsError."""
        async with self._got("/api/v2/alerts", _ALL) as response:
            return await self._read(response)

    async def configuration(self) -> str:
        """Give its configuration as it shows it, with secrets hidden. Raises as `alerts` does."""
        async with self._got("/api/v2/status", {}) as response:
            try:
                return str(json.loads(await self._text(response))["config"]["original"])
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise AlertsUnavailable(f"{self._where}: the answer has no configuration: {error!r}") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def _got(self, path: str, params: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give an answer of status 200, whose body is still to be read."""
        url = f"{str(self._endpoint.url).rstrip('/')}{path}"
        header = authorization(self._where, self._endpoint)
        headers = {"Accept": "application/json"} | ({"Authorization": header} if header else {})
        try:
            # A redirect is no answer: it leads to a login page, and the credentials would go along.
            async with self._opened().get(
                url, params=params, headers=headers, allow_redirects=False, ssl=self._trust()
            ) as response:
                if response.status != 200:
                    words = (await response.content.read(_EXCERPT_BYTES)).decode("utf-8", "replace")
                    mendable = response.status in _MENDABLE or response.status // 100 == 3
                    refusal = AlertsRefused if mendable else AlertsUnavailable
                    raise refusal(f"{self._where}: HTTP {response.status}: {words}")
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AlertsUnavailable(f"{self._where}: {error or type(error).__name__}") from error

    async def _read(self, response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
        most = self._endpoint.max_series
        found: list[dict[str, Any]] = []
        try:
            for alert in elements(await self._text(response)):
                if not isinstance(alert, dict):
                    raise AlertsUnavailable(f"{self._where}: the answer is no list of alerts")
                if len(found) == most:
                    raise AlertsRefused(f"{self._where}: more than {most} alerts: raise {self._where}.maxSeries")
                found.append(alert)
                if len(found) % SLICE == 0:
                    await asyncio.sleep(0)
        except (ValueError, RecursionError) as error:
            raise AlertsUnavailable(f"{self._where}: the answer is no list of JSON: {error}") from error
        return found

    async def _text(self, response: aiohttp.ClientResponse) -> str:
        """Read within `maxBytes`: a few kB of gzip may become gigabytes. Raises ValueError where it is no UTF-8."""
        most = self._endpoint.max_bytes or BYTES_PER_ALERT * self._endpoint.max_series
        read = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            read += chunk
            if len(read) > most:
                raise AlertsRefused(f"{self._where}: more than {most} bytes: raise {self._where}.maxBytes")
        return read.decode("utf-8")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._endpoint.timeout_seconds)
            self._session = aiohttp.ClientSession(timeout=timeout, proxy=proxy_of(self._endpoint))
        return self._session

    def _trust(self) -> ssl.SSLContext | bool:
        """Another context is another connection: what is open goes on until it is idle."""
        if self._trusted is None:
            self._trusted = trust(self._where, self._endpoint)
        return self._trusted()


def elements(text: str) -> Iterator[Any]:
    """Give the elements of a JSON array one after the other. Raises ValueError where the text is none."""

    def skipped(position: int) -> int:
        found = _SPACE.match(text, position)
        return found.end() if found else position

    position = skipped(0)
    if text[position : position + 1] != "[":
        raise ValueError("no array")
    position = skipped(position + 1)
    if text[position : position + 1] == "]":
        separator = "]"
    else:
        separator = ","
        position -= 1
    while separator == ",":
        element, position = _DECODER.raw_decode(text, skipped(position + 1))
        yield element
        position = skipped(position)
        separator = text[position : position + 1]
    if separator != "]" or skipped(position + 1) != len(text):
        raise ValueError(f"no array: character {position}")
