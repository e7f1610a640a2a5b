"""One look at what all Alertmanagers of the settings list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from reactor.alerts.alert import Alert, BadAlert, from_api
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError
from reactor.runtime.log_throttle import LogThrottle
from reactor.runtime.slices import sliced

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0


class AlertsApi(Protocol):
    """One Alertmanager."""

    async def alerts(self) -> Sequence[Mapping[str, Any]]:
        """GET /api/v2/alerts, silenced and inhibited ones included. Raises ReactorError."""
        ...


class ListedAlert(NamedTuple):
    """One alert that is listed."""

    alert: Alert
    active: bool
    """True if it is neither silenced nor inhibited."""


class Poll(NamedTuple):
    """Alerts that all Alertmanagers list together."""

    listed: dict[str, ListedAlert]
    """Alerts by fingerprint: active where any Alertmanager has them active."""
    present: frozenset[str] | None
    """Fingerprints that any of them lists, also of alerts that cannot be read. None: one did not answer."""
    answered: bool
    """True if any of them answered."""


class Polling:
    """Asks the Alertmanagers of the settings, all at the same time."""

    def __init__(self, endpoints: Mapping[str, AlertsApi], throttle: LogThrottle) -> None:
        self.endpoints = endpoints
        self._throttle = throttle

    async def poll(self) -> Poll:
        """Ask all of them. One that does not answer within ANSWER_SECONDS is logged."""
        answers = dict(zip(self.endpoints, await asyncio.gather(*map(self._ask, self.endpoints)), strict=True))
        raws = [(name, raw) for name, answer in answers.items() for raw in answer or ()]
        listed: dict[str, ListedAlert] = {}
        present: set[str] = set()
        async for name, raw in sliced(raws):
            present.add(str(raw.get("fingerprint")))
            if found := self._read(name, raw):
                present.add(found.alert.fingerprint)
                if found.active or found.alert.fingerprint not in listed:
                    listed[found.alert.fingerprint] = found
        complete = bool(answers) and None not in answers.values()
        answered = any(answer is not None for answer in answers.values())
        return Poll(listed, frozenset(present) if complete else None, answered)

    async def _ask(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        """Give what one Alertmanager lists; None: it did not say."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self.endpoints[name].alerts()
        except (ReactorError, TimeoutError) as error:
            telemetry.source_errors.labels(name, "ReconcileFailed").inc()
            if self._throttle(("reconcile", name, str(error))):
                why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
                log.warning("an Alertmanager does not answer", extra={"alertmanager": name, "reason": why})
            return None

    def _read(self, name: str, raw: Mapping[str, Any]) -> ListedAlert | None:
        try:
            return ListedAlert(*from_api(raw))
        except BadAlert as error:
            telemetry.source_errors.labels(name, "BadAlert").inc()
            if self._throttle(("bad alert", name, str(error))):
                log.warning("an alert of the API cannot be read", extra={"alertmanager": name, "reason": str(error)})
            return None
