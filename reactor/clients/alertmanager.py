"""What an Alertmanager holds now: for finding what its webhook never told, a lost resolved or a lost firing."""

from __future__ import annotations

from typing import Any

import aiohttp

from reactor.clients.credentials import authorization, trust
from reactor.errors import Retryable, Terminal
from reactor.settings import Endpoint

_ALL = {"active": "true", "silenced": "true", "inhibited": "true", "unprocessed": "true"}
_EXCERPT_BYTES = 300
_MENDABLE = frozenset({400, 401, 403, 404, 405})


class AlertsUnavailable(Retryable):
    """No answer, or none that can be used."""


class AlertsRefused(Terminal):
    """The address or the credentials have to be mended."""


class Alertmanager:
    """One Alertmanager of the settings."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._where = f"alertmanager.{name}"
        self._endpoint = endpoint
        self._session: aiohttp.ClientSession | None = None

    async def alerts(self) -> list[dict[str, Any]]:
        """Give all alerts, as its API v2 describes them. Raises AlertsUnavailable, AlertsRefused or SettingsError."""
        url = f"{str(self._endpoint.url).rstrip('/')}/api/v2/alerts"
        header = authorization(self._where, self._endpoint)
        headers = {"Accept": "application/json"} | ({"Authorization": header} if header else {})
        try:
            # A redirect is no answer: it leads to a login page, and the credentials would go along.
            async with self._opened().get(url, params=_ALL, headers=headers, allow_redirects=False) as response:
                return await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AlertsUnavailable(f"{self._where}: {error or type(error).__name__}") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _read(self, response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
        if response.status != 200:
            words = (await response.content.read(_EXCERPT_BYTES)).decode("utf-8", "replace")
            mendable = response.status in _MENDABLE or response.status // 100 == 3
            refusal = AlertsRefused if mendable else AlertsUnavailable
            raise refusal(f"{self._where}: HTTP {response.status}: {words}")
        try:
            found = await response.json(content_type=None)
        except ValueError as error:
            raise AlertsUnavailable(f"{self._where}: the answer is no JSON: {error}") from error
        if not isinstance(found, list) or not all(isinstance(alert, dict) for alert in found):
            raise AlertsUnavailable(f"{self._where}: the answer is no list of alerts")
        most = self._endpoint.max_series
        if len(found) > most:
            raise AlertsRefused(f"{self._where}: more than {most} alerts: raise {self._where}.maxSeries")
        return found

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._endpoint.timeout_seconds)
            self._session = aiohttp.ClientSession(
                timeout=timeout, connector=aiohttp.TCPConnector(ssl=trust(self._where, self._endpoint))
            )
        return self._session
