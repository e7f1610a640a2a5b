"""Checks that a Prometheus that was started again has scraped its targets.

Until it has, it answers with samples from before it went (it looks back five minutes), or with none where its data is
lost; neither shows what is so now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import requests
from prometheus_api_client.prometheus_connect import PrometheusConnect

LOOKBACK = timedelta(minutes=5)
"""Prometheus' default of `--query.lookback-delta`: older samples are in no instant query."""
_NEVER = "0001-01-01"
"""The beginning of `lastScrape` of a target that was not scraped since the start."""


class NotScrapedYet(Exception):
    """The answer of a Prometheus may be from before its start."""


class Scraped:
    """Asks a Prometheus since when it runs; once after each start, whether it has scraped all its targets since."""

    def __init__(self, client: PrometheusConnect, session: requests.Session, timeout_seconds: float) -> None:
        self._client = client
        self._session = session
        self._timeout = timeout_seconds
        self._known: str | None = None
        """The start since which it is known to have scraped all its targets."""

    def was(self) -> bool:
        """True if what has just been answered shows the time since its start; False: ask again, from now on it does.

        Servers without Prometheus' status API (Thanos, Mimir) are believed. Raises NotScrapedYet, and what requests
        raises.
        """
        answer = self._session.get(
            f"{self._client.url}/api/v1/status/runtimeinfo", auth=self._client.auth, timeout=self._timeout
        )
        started = _started(answer)
        if started is None or started == self._known:
            return True
        if parsedate_to_datetime(answer.headers["Date"]) - datetime.fromisoformat(started) < LOOKBACK:
            targets = self._client.get_targets(state="active")["activeTargets"]
            missing = [one["scrapeUrl"] for one in targets if one["lastScrape"].startswith(_NEVER)]
            if missing or not targets:
                which = f", {missing[0]} among them" if missing else ""
                raise NotScrapedYet(
                    f"Prometheus started at {started} and has not scraped {len(missing) or 'any'} of its "
                    f"{len(targets)} targets since{which}: what it answers may be from before"
                )
        self._known = started
        return False


def _started(answer: requests.Response) -> str | None:
    """Since when it runs; None: it does not say."""
    if answer.status_code != HTTPStatus.OK:
        return None
    document: Any = answer.json()
    data = document.get("data") if isinstance(document, Mapping) else None
    started = data.get("startTime") if isinstance(data, Mapping) else None
    return started if isinstance(started, str) else None
