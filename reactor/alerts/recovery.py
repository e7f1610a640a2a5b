"""Asks Prometheus for the proof that a resolved alert's target has recovered.

Resolved alone proves nothing: Alertmanager says it also when Prometheus died (after four minutes) and when the target
vanished (after a second). A series that agrees with the alert is proof; a failed or empty query proves nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from reactor.alerts.alert_evidence import AlertEvidence
from reactor.alerts.origins import Origin, Origins
from reactor.alerts.states import AlertState
from reactor.alerts.store import AlertStore, Change
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from reactor.runtime.log_throttle import LogThrottle
from reactor.runtime.slices import sliced
from rules.rulefile.sources import Confirm

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0  # a slow Prometheus must not hold up what is said of other targets
LOOKS = 1000
"""Alerts that are looked at between two pauses of the event loop."""
COMPARISONS = 2000
"""Series compared with an alert between two pauses."""

QueryPrometheus = Callable[[str, str], Awaitable[Sequence[Mapping[str, str]]]]
"""Asks a named Prometheus endpoint a PromQL instant query; gives the labels of each series. Raises ReactorError."""

Asked = list[tuple[AlertState, Origin]]


class Confirming:
    """Confirms recoveries, and confirms them again for those who ask."""

    def __init__(
        self,
        alert_store: AlertStore,
        origins: Origins,
        clock: Clock,
        query: QueryPrometheus,
        throttle: LogThrottle,
        evidence: AlertEvidence,
    ) -> None:
        self._alert_store = alert_store
        self._origins = origins
        self._clock = clock
        self._query = query
        self._throttle = throttle
        self._evidence = evidence
        self._again_at: dict[Confirm, datetime] = {}
        self._locks: dict[Confirm, asyncio.Lock] = {}

    async def seek(self) -> None:
        """Run the queries that are due, for alerts that wait. Raises Unavailable where the bucket does not answer."""
        now = self._clock.now()
        confirms = {origin.source.confirm for origin in self._origins.all if origin.source.confirm}
        due = {confirm for confirm in confirms if now >= self._again_at.get(confirm, now)}
        if due:
            waiting = await self._by_query(
                [state async for _, state in sliced(self._alert_store.alert_cache.items(), size=LOOKS) if state.waits]
            )
            await asyncio.gather(*(self._ask(confirm, states) for confirm, states in waiting.items() if confirm in due))

    async def ask(self, states: Sequence[AlertState], not_before: datetime) -> None:
        """Ask again about these, unless a query that began at `not_before` or later has ended meanwhile.

        What has recovered by an earlier answer, and does not agree with this one, waits for its proof again. Raises
        Unavailable.
        """
        by_query = await self._by_query([state for state in states if state.status == "resolved" and state.opened])
        await asyncio.gather(*(self._ask_once(confirm, asked, not_before) for confirm, asked in by_query.items()))

    async def _by_query(self, states: Sequence[AlertState]) -> dict[Confirm, Asked]:
        found: dict[Confirm, Asked] = {}
        async for state in sliced(states):
            origin = self._origins.of_state(state)
            if origin and origin.source.confirm and not (state.confirmed and origin.believes):
                found.setdefault(origin.source.confirm, []).append((state, origin))
        return found

    async def _ask_once(self, confirm: Confirm, asked: Asked, not_before: datetime) -> None:
        async with self._locks.setdefault(confirm, asyncio.Lock()):
            due = [(state, origin) for state, origin in asked if not self._evidence.asked_since(state.key, not_before)]
            if due:
                await self._ask(confirm, due)

    async def _ask(self, confirm: Confirm, asked: Asked) -> None:
        asked_at = self._clock.now()
        self._again_at[confirm] = asked_at + timedelta(seconds=confirm.every_seconds)
        series = await self._series(confirm, {origin.source.name for _, origin in asked})
        changes: dict[str, Change] = {}
        proven: list[AlertState] = []
        async for state, origin in sliced(asked, size=max(1, COMPARISONS // (len(series or ()) + 1))):
            agreed = agrees(series or (), state.labels, origin.used)
            self._evidence.asked(state.key, asked_at, confirmed=agreed)
            if series is not None and agreed is not state.confirmed:
                changes[state.key] = _settled(state, asked_at, confirmed=agreed)
                proven += [state] if agreed else []
        await self._alert_store.change(changes)
        for state in proven:
            log.info("recovery is confirmed", extra={"source": state.source, "target": state.target})

    async def _series(self, confirm: Confirm, sources: Iterable[str]) -> Sequence[Mapping[str, str]] | None:
        """Give what the query answers; None: it failed, which is counted and logged."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._query(confirm.prometheus, confirm.query)
        except (ReactorError, TimeoutError) as error:
            for name in sources:
                telemetry.source_errors.labels(name, "ConfirmFailed").inc()
            if self._throttle(("confirm", confirm, str(error))):
                why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
                log.warning("no proof: the query failed", extra={"prometheus": confirm.prometheus, "reason": why})
            return None


def agrees(series: Iterable[Mapping[str, str]], labels: Mapping[str, str], used: Iterable[str]) -> bool:
    """True if any series has, of the labels that make the target, none with another value than the alert's."""
    names = tuple(used)
    return any(all(one.get(name, labels.get(name)) == labels.get(name) for name in names) for one in series)


def _settled(asked: AlertState, asked_at: datetime, *, confirmed: bool) -> Change:
    def change(state: AlertState | None) -> AlertState | None:
        # What fired again while the query ran is not proven by it, nor is a later end.
        if state is None or (state.changed_at, state.status) != (asked.changed_at, asked.status):
            return state
        return state.model_copy(update={"confirmed": confirmed, "changed_at": max(asked_at, state.changed_at)})

    return change
