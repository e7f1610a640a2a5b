"""Asks Prometheus for the proof that a resolved alert's target has recovered.

Resolved alone proves nothing: Alertmanager says it also when Prometheus died (after four minutes) and when the target
vanished (after a second). A series that agrees with the alert is proof; a failed or empty query proves nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from reactor import telemetry
from reactor.clock import Clock
from reactor.errors import ReactorError
from reactor.webhook.ledger import Change, Ledger
from reactor.webhook.origins import Origin, Origins
from reactor.webhook.seldom import Seldom
from reactor.webhook.states import AlertState
from rules.language.sources import Confirm

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0  # a slow Prometheus must not hold up what is said of other targets

Query = Callable[[str, str], Awaitable[Sequence[Mapping[str, str]]]]
"""Asks a named Prometheus endpoint a PromQL instant query; gives the labels of each series. Raises ReactorError."""


class Proof:
    """Confirms what waits for it."""

    def __init__(self, ledger: Ledger, origins: Origins, clock: Clock, query: Query, seldom: Seldom) -> None:
        self._ledger = ledger
        self._origins = origins
        self._clock = clock
        self._query = query
        self._seldom = seldom
        self._again_at: dict[Confirm, datetime] = {}

    async def seek(self) -> None:
        """Run the queries that are due, for alerts that wait. Raises Unavailable where the bucket does not answer."""
        now = self._clock.now()
        confirms = {origin.source.confirm for origin in self._origins.all if origin.source.confirm}
        due = {confirm for confirm in confirms if now >= self._again_at.get(confirm, now)}
        if not due:
            return
        waiting: dict[Confirm, list[tuple[AlertState, Origin]]] = {}
        for state in self._ledger.mirror:
            origin = self._origins.of_state(state) if state.waits else None
            if origin and origin.source.confirm in due:
                waiting.setdefault(origin.source.confirm, []).append((state, origin))
        for confirm in waiting:
            self._again_at[confirm] = now + timedelta(seconds=confirm.every_seconds)
        await asyncio.gather(*(self._seek(confirm, states) for confirm, states in waiting.items()))

    async def _seek(self, confirm: Confirm, waiting: list[tuple[AlertState, Origin]]) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                series = await self._query(confirm.prometheus, confirm.query)
        except (ReactorError, TimeoutError) as error:
            for name in {origin.source.name for _, origin in waiting}:
                telemetry.source_errors.labels(name, "ConfirmFailed").inc()
            if self._seldom(("confirm", confirm, str(error))):
                why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
                log.warning("no proof: the query failed", extra={"prometheus": confirm.prometheus, "reason": why})
            return
        proven = [state for state, origin in waiting if agrees(series, state.labels, origin.used)]
        now = self._clock.now()
        await self._ledger.change({state.key: _confirmed(state, now) for state in proven})
        for state in proven:
            log.info("recovery is confirmed", extra={"source": state.source, "target": state.target})


def agrees(series: Iterable[Mapping[str, str]], labels: Mapping[str, str], used: Iterable[str]) -> bool:
    """Whether any series has, of the labels that make the target, none with another value than the alert's."""
    names = tuple(used)
    return any(all(one.get(name, labels.get(name)) == labels.get(name) for name in names) for one in series)


def _confirmed(proven: AlertState, now: datetime) -> Change:
    def change(state: AlertState | None) -> AlertState | None:
        # What fired again while the query ran is not proven by it, nor is a later end.
        if state is None or state.changed_at != proven.changed_at:
            return state
        return state.model_copy(update={"confirmed": True, "changed_at": now})

    return change
