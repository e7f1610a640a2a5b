"""Compares what we remember with what Alertmanager's API lists, so that a lost post heals.

Alertmanager never posts the resolved of an alert that was silenced while it fired, and forgets what it wanted to say
when it is killed between two snapshots. What is absent there is nevertheless not recovered: an Alertmanager that was
started again lists nothing until Prometheus has sent everything once more, a minute or two later, or when it is back
itself. So absence has to last, and then it is a resolved that is never believed, only proven.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from reactor import telemetry
from reactor.clock import Clock
from reactor.errors import ReactorError
from reactor.webhook.alerts import Alert, BadAlert, from_api
from reactor.webhook.ledger import Change, Ledger
from reactor.webhook.origins import Origin, Origins
from reactor.webhook.seldom import Seldom
from reactor.webhook.states import AlertState, Fate, Opinion, key_of, take

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
ABSENT = timedelta(minutes=5)
"""How long a firing alert has to be absent without a break: Alertmanager's own resolve_timeout, and more than the four
minutes that it waits for a Prometheus that has gone silent."""


Listed = dict[str, tuple[Alert, bool]]
"""By fingerprint: the alert, and whether it is active, not silenced or inhibited."""


class AlertsApi(Protocol):
    """One Alertmanager."""

    async def alerts(self) -> Sequence[Mapping[str, Any]]:
        """GET /api/v2/alerts, silenced and inhibited ones included. Raises ReactorError."""
        ...


class Reconciler:
    """Knows since when what is absent, and when each alert was last listed."""

    def __init__(
        self,
        ledger: Ledger,
        origins: Origins,
        clock: Clock,
        endpoints: Mapping[str, AlertsApi],
        seldom: Seldom,
        *,
        absent_for: timedelta = ABSENT,
    ) -> None:
        self.heard: dict[str, datetime] = {}
        """By key: when the API last listed a firing alert. As good as a post."""
        self._ledger = ledger
        self._origins = origins
        self._clock = clock
        self._endpoints = endpoints
        self._seldom = seldom
        self._absent_for = absent_for
        self._absent: dict[str, datetime] = {}
        """By key: since when a firing alert has been absent each time that we asked, and was not posted."""
        self._again_at: datetime | None = None

    def looked_away(self) -> None:
        """Count absences anew: what happened meanwhile was not seen."""
        self._absent.clear()

    async def reconcile(self, every: timedelta) -> None:
        """Ask all Alertmanagers, if it is time to. Raises Unavailable where the bucket does not answer."""
        asked_at = self._clock.now()
        if not self._endpoints or (self._again_at and asked_at < self._again_at):
            return
        self._again_at = asked_at + every
        answers = dict(zip(self._endpoints, await asyncio.gather(*map(self._ask, self._endpoints)), strict=True))
        raws = [(name, raw) for name, answer in answers.items() for raw in answer or ()]
        listed = _by_fingerprint(found for name, raw in raws if (found := self._read(name, raw)))
        # Also what we cannot read is there.
        present = None if None in answers.values() else {*listed, *(str(raw.get("fingerprint")) for _, raw in raws)}
        changes = self._of_known(listed, present, asked_at)
        for alert, active in listed.values():
            for opinion, origin in self._origins.of_listed(alert).items() if active else ():
                changes.setdefault(key_of(opinion, alert.fingerprint), _opened(alert, opinion, origin, asked_at))
        await self._ledger.change(changes)

    def _of_known(self, listed: Listed, present: set[str] | None, asked_at: datetime) -> dict[str, Change]:
        """`present`: all that any Alertmanager lists; None: not all of them answered."""
        changes: dict[str, Change] = {}
        absent: dict[str, datetime] = {}
        heard: dict[str, datetime] = {}
        for state in self._ledger.mirror:
            found = listed.get(state.fingerprint)
            origin = self._origins.of_state(state) if found else None
            if found and origin and (state.status == "firing" or found[1]):
                changes[state.key] = _opened(found[0], state.opinion, origin, asked_at)
                heard[state.key] = asked_at
            elif state.status == "firing":
                heard[state.key] = self.heard.get(state.key, state.last_post_at)
                if present is not None and state.fingerprint not in present and _counts(state, asked_at):
                    since = absent[state.key] = max(self._absent.get(state.key, asked_at), state.last_post_at)
                    # Never at the first look, which may race with Alertmanager's own garbage collection.
                    if since < asked_at and asked_at - since >= self._absent_for:
                        changes[state.key] = self._gone(state, asked_at)
        self._absent = absent
        self.heard.clear()  # the Voice reads the same dict
        self.heard.update(heard)
        return changes

    def _gone(self, state: AlertState, asked_at: datetime) -> Change:
        log.warning(
            "an alert is no longer listed, and nobody said that it is over: Unknown until that is proven",
            extra={"source": state.source, "target": state.target},
        )
        end = max(asked_at, state.starts_at or asked_at)
        resolved = Alert(status="resolved", labels=state.labels, endsAt=end, fingerprint=state.fingerprint)

        def change(current: AlertState | None) -> AlertState | None:
            if current is None or not _counts(current, asked_at):
                return current
            return take(current, resolved, asked_at, opinion=current.opinion, believe=False)[0]

        return change

    async def _ask(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        """Give what one Alertmanager lists; None: it did not say."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._endpoints[name].alerts()
        except (ReactorError, TimeoutError) as error:
            telemetry.source_errors.labels(name, "ReconcileFailed").inc()
            if self._seldom(("reconcile", name, str(error))):
                why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
                log.warning("an Alertmanager does not answer", extra={"alertmanager": name, "reason": why})
            return None

    def _read(self, name: str, raw: Mapping[str, Any]) -> tuple[Alert, bool] | None:
        try:
            return from_api(raw)
        except BadAlert as error:
            telemetry.source_errors.labels(name, "BadAlert").inc()
            if self._seldom(("bad alert", name, str(error))):
                log.warning("an alert of the API cannot be read", extra={"alertmanager": name, "reason": str(error)})
            return None


def _by_fingerprint(alerts: Iterable[tuple[Alert, bool]]) -> Listed:
    """One for each fingerprint: active where any Alertmanager has it active."""
    found: Listed = {}
    for alert, active in alerts:
        if active or alert.fingerprint not in found:
            found[alert.fingerprint] = alert, active
    return found


def _counts(state: AlertState, asked_at: datetime) -> bool:
    """Whether absence from the API says anything: it was there before, and was not posted while we asked.

    What was never listed may come from an Alertmanager, or another sender, whose API nobody has told us of.
    """
    return state.status == "firing" and state.listed and state.last_post_at < asked_at


def _opened(alert: Alert, opinion: Opinion, origin: Origin, asked_at: datetime) -> Change:
    def change(state: AlertState | None) -> AlertState | None:
        if state is None or state.status == "resolved":
            taken, fate = take(state, alert, asked_at, opinion=opinion, believe=origin.believes)
            if fate is not Fate.TAKEN:
                return state
            log.warning(
                "an alert fires that was not posted", extra={"source": opinion.source, "target": opinion.target}
            )
            state = taken
        return state if state.listed else state.model_copy(update={"listed": True})

    return change
