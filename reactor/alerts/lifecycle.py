"""Keeps standing alerts: turns journaled posts into states, and states into observations.

Any number of keepers may run at once on one bucket, in as many processes. None of them is the only one to know
anything: a post may be taken by one and its target spoken of by another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.errors import Unavailable
from bus.messages import RefreshRequest, WebhookPost
from bus.port import Store
from reactor.alerts.alert import Alert, BadAlert
from reactor.alerts.alert_evidence import AlertEvidence
from reactor.alerts.alert_limits import Admission
from reactor.alerts.origins import Origin, Origins
from reactor.alerts.polling import AlertsApi
from reactor.alerts.publisher import AlertPublisher, Tell
from reactor.alerts.reconcile import ABSENT, ABSENT_UNLISTED, ReceivingSince, Reconciler, always
from reactor.alerts.recovery import Confirming, QueryPrometheus
from reactor.alerts.states import AlertOpinion, AlertOutcome, AlertState, key_of, take
from reactor.alerts.store import AlertStore, Change, fold
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SourceUnknown
from reactor.runtime.log_throttle import LogThrottle
from reactor.runtime.slices import sliced
from rules.rulefile.sources import AlertmanagerWebhook

log = logging.getLogger(__name__)

ROLLED_OUT = timedelta(minutes=2)
"""Time for which a post for a source that is not known here goes back into the queue: changed rule files reach the
processes one after the other, a ConfigMap within about a minute."""
RECONCILE = timedelta(seconds=30)
AWAY = timedelta(seconds=10)
"""Sweeps further apart than this mean that the process was stopped: what it remembers may be old."""
KEPT_OVER = timedelta(hours=1)
"""A recovered alert is remembered for this long, so that a late firing of the same episode is known as such. More than
`publisher.LASTING`, so that its last words do not go stale."""
KEPT_OPEN = timedelta(days=30)
"""One whose recovery no source proves, or that is not observed any more: else the bucket would grow without end."""
TIDY = timedelta(minutes=1)


@dataclass(slots=True)
class _Fold:
    """Change of one state by a post. `fate` is that of the last try, when the bucket has taken it."""

    alert: Alert
    at: datetime
    opinion: AlertOpinion
    believe: bool
    fate: AlertOutcome = AlertOutcome.IGNORED

    def __call__(self, state: AlertState | None) -> AlertState:
        state, self.fate = take(state, self.alert, self.at, opinion=self.opinion, believe=self.believe)
        return state


class AlertLifecycle:
    """`async with AlertLifecycle(…) as lifecycle`, then `take_post` for each journaled post, `sweep` every second."""

    def __init__(
        self,
        *,
        sources: Sequence[AlertmanagerWebhook],
        store: Store,
        clock: Clock,
        tell: Tell,
        query: QueryPrometheus,
        alertmanagers: Mapping[str, AlertsApi],
        receiving_since: ReceivingSince = always,
        reconcile_every: timedelta = RECONCILE,
        absent_for: timedelta = ABSENT,
        unlisted_for: timedelta = ABSENT_UNLISTED,
    ) -> None:
        """`store` is the bucket ALERTS, `alertmanagers` are the APIs by their name in the settings."""
        self._throttle = throttle = LogThrottle(clock)
        self._clock = clock
        self._alert_store = AlertStore(store)
        self._admission = Admission(self._alert_store.alert_cache, clock)
        self._origins = Origins(sources, throttle, self._admission)
        self._evidence = AlertEvidence(pollable=bool(alertmanagers))
        self._reconciler = Reconciler(
            self._alert_store, self._origins, clock, alertmanagers, throttle, self._evidence,
            receiving_since=receiving_since, absent_for=absent_for, unlisted_for=unlisted_for,
        )  # fmt: skip
        self._reconcile_every = reconcile_every
        self._confirming = Confirming(self._alert_store, self._origins, clock, query, throttle, self._evidence)
        self._publisher = AlertPublisher(self._alert_store.alert_cache, self._origins, tell, self._evidence)
        self._swept_at: datetime | None = None
        self._tidied_at: datetime | None = None
        self._facts_lost = False
        self._due = asyncio.Event()

    async def __aenter__(self) -> AlertLifecycle:
        """Read the bucket, so that a restart forgets nothing, and follow it. Raises Unavailable."""
        await self._alert_store.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._alert_store.__aexit__(*exception)

    async def take_post(self, post: WebhookPost) -> None:
        """Fold one chunk of a post into the states and say what changed. Taking it again does no harm.

        Raises SourceUnknown, Unavailable, and what `tell` raises: the chunk is to be given again then.
        """
        if not self._knows(post.source) and self._clock.now() - post.observed_at < ROLLED_OUT:
            raise SourceUnknown(f"no source {post.source} in the rules here: a receiver has newer ones")
        folds: dict[str, list[_Fold]] = {}
        async for raw in sliced(post.alerts):
            for one in self._folds(post, raw):
                folds.setdefault(key_of(one.opinion, one.alert.fingerprint), []).append(one)
        changes: dict[str, Change] = {key: fold(steps) for key, steps in folds.items()}
        await self._alert_store.change(changes)
        self._note(post, folds)
        taken = [step for steps in folds.values() for step in steps]
        self._admission.written((key, step.opinion) for key, steps in folds.items() for step in steps)
        await self._publisher.speak(dict.fromkeys(step.opinion for step in taken), self._clock.now())
        for step in taken:
            self._count(post, step.fate)

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources that it can be asked about."""
        return frozenset(origin.source.name for origin in self._origins.all)

    async def refresh(self, source: str, request: RefreshRequest) -> None:
        """Look again, and say what is seen of these targets: alerts are polled, recoveries confirmed again.

        What no Alertmanager lists any more is not said to fire; in its time it counts as gone. Raises Unavailable.
        """
        signals = {origin.source.says for origin in self._origins.all if origin.source.name == source}
        asked = [AlertOpinion(source, signal, target) for target in request.targets for signal in sorted(signals)]
        states = [state for opinion in asked for state in self._alert_store.alert_cache.of(opinion)]
        looks = [self._confirming.ask(states, request.not_before)]
        if any(self._reconciler.needs_poll(state, request.not_before) for state in states):
            looks.append(self._reconciler.ask(request.not_before))
        for failure in await asyncio.gather(*looks, return_exceptions=True):
            if failure:
                raise failure
        now = self._clock.now()
        await self._publisher.answer(asked, request.not_before, now)
        await self._publisher.speak(asked, now)

    @property
    def is_empty(self) -> bool:
        """True if no alert is remembered: the bus is new, or was wiped."""
        return not self._alert_store.alert_cache.keys()

    def look_now(self) -> None:
        """Poll at once: posts may have been lost."""
        self._reconciler.now()
        self._due.set()

    def facts_lost(self) -> None:
        """The bus was wiped: what is remembered is stored and said again at once, and polled."""
        self._facts_lost = True
        self.look_now()

    async def wait(self, seconds: float) -> None:
        """Wait until it is time for the next sweep: so long, or until something is due at once."""
        try:
            async with asyncio.timeout(seconds):
                await self._due.wait()
        except TimeoutError:
            return

    async def sweep(self) -> None:
        """Do what is due: say standing statuses again, seek proofs, reconcile, forget. To be called every second.

        Where the bus does not answer it says so to the log, and the next call goes on where this one stopped.
        """
        try:
            await self._sweep(self._clock.now())
        except Unavailable as error:
            if self._throttle(("sweep", type(error))):
                log.warning("standing alerts wait for the bus", extra={"reason": str(error)})

    async def _sweep(self, now: datetime) -> None:
        self._due.clear()
        self._alert_store.check()
        if self._facts_lost:
            self._publisher.forget()
            await self._publisher.refresh(now)  # first: other sources say at the same time what they know
            await self._alert_store.read()
            self._facts_lost = False
        if self._swept_at and now - self._swept_at > AWAY:
            self._reconciler.looked_away()
            await self._alert_store.read()
        self._swept_at = now
        await self._publisher.refresh(now)
        asked = (self._confirming.seek(), self._reconciler.reconcile(self._reconcile_every))
        failures = [one for one in await asyncio.gather(*asked, return_exceptions=True) if one]
        if failures:
            raise failures[0]
        if self._tidied_at is None or now - self._tidied_at >= TIDY:
            await self._alert_store.look_for_another()
            await self._tidy(now)
            self._tidied_at = now
        await self._publisher.refresh(self._clock.now())

    def _note(self, post: WebhookPost, folds: Mapping[str, Sequence[_Fold]]) -> None:
        """Remember what the post has shown to fire; the API is to be polled soon for what is new."""
        for key, steps in folds.items():
            state = self._alert_store.alert_cache.held(key).state
            if state is None or state.status != "firing":
                continue
            if any(step.alert.status == "firing" and step.fate is not AlertOutcome.IGNORED for step in steps):
                self._evidence.posted(key, post.observed_at)
            if not state.listed:
                self._reconciler.soon()

    def _folds(self, post: WebhookPost, raw: Mapping[str, object]) -> list[_Fold]:
        """Give what an alert changes; nothing, but counted, if no source wants it or it cannot be used."""
        try:
            alert = Alert.read(raw)
        except BadAlert:
            # The receiver lets none of these through; other publishers of the bus may.
            self._count(post, AlertOutcome.QUARANTINED)
            return []
        found: dict[AlertOpinion, Origin] | None = self._origins.of_post(post.source, alert)
        if not found:
            self._count(post, AlertOutcome.QUARANTINED if found is None else AlertOutcome.UNMATCHED)
            return []
        return [_Fold(alert, post.observed_at, opinion, origin.believes) for opinion, origin in found.items()]

    def _count(self, post: WebhookPost, fate: AlertOutcome) -> None:
        source = post.source if self._knows(post.source) else "unknown"
        telemetry.webhook_alerts.labels(source, fate.value).inc()

    def _knows(self, source: str) -> bool:
        return source in self.sources

    async def _tidy(self, now: datetime) -> None:
        over = {
            key: state
            async for key, state in sliced(self._alert_store.alert_cache.items(), size=1000)
            if _over(state, now)
        }
        for opinion in dict.fromkeys(state.opinion for state in over.values()):
            if all(state.key in over for state in self._alert_store.alert_cache.of(opinion)):
                await self._publisher.last_word(opinion, now)
        await self._alert_store.change({key: _forgotten(state) for key, state in over.items()})


def _over(state: AlertState, now: datetime) -> bool:
    if state.status == "resolved" and not state.waits:
        return now - state.changed_at > KEPT_OVER
    return now - max(state.last_post_at, state.changed_at) > KEPT_OPEN


def _forgotten(over: AlertState) -> Change:
    def change(state: AlertState | None) -> AlertState | None:
        return None if state == over else state

    return change
