"""Compares what we remember with what Alertmanager's API lists, so that a lost post heals.

Alertmanager never posts the resolved of an alert that was silenced while it fired, and a killed one forgets its alerts
and comes back empty. What is absent there has nevertheless not recovered: an Alertmanager that was started again lists
nothing until Prometheus has sent everything once more, a minute or two later, or when it is back itself. So absence has
to last, and then it is a resolved that is never believed, only proven. The same becomes of an alert that is neither
posted nor listed for SILENT: no alert stays without end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from bus.errors import Unavailable
from reactor.alerts.alert import Alert
from reactor.alerts.alert_evidence import AlertEvidence
from reactor.alerts.origins import Origin, Origins
from reactor.alerts.polling import AlertsApi, ListedAlert, Poll, Polling
from reactor.alerts.states import (
    LISTED_AGAIN,
    SILENT,
    AlertOpinion,
    AlertOutcome,
    AlertState,
    fires_again,
    is_late_firing,
    key_of,
    take,
)
from reactor.alerts.store import AlertStore, Change
from reactor.runtime.clock import Clock
from reactor.runtime.log_throttle import LogThrottle
from reactor.runtime.slices import sliced

log = logging.getLogger(__name__)

ABSENT = timedelta(minutes=5)
"""Time for which a firing alert has to be absent without a break: Alertmanager's own resolve_timeout, and more than the
four minutes that it waits for a Prometheus that has gone silent."""
ABSENT_UNLISTED = timedelta(minutes=6)
"""The same since the newest POST of an alert that no poll has ever listed: more than the repeat_interval that we
recommend, as another sender may have posted it, whose API the settings do not name."""
SOON = timedelta(seconds=5)
"""Wait from a first POST to the poll of the API that shows if the alert is listed."""
AT_MOST_EVERY = timedelta(seconds=1)
"""Least time between polls for posts that may have been lost: of a bus that takes none, hundreds are refused."""


ReceivingSince = Callable[[], Awaitable[datetime | None]]
"""Gives since when receivers have taken each POST; None: not known. Raises Unavailable."""


async def always() -> datetime | None:
    """Receivers were never away, as far as this process knows."""
    return None


class Reconciler:
    """Knows since when what is absent, and when each alert was last listed."""

    def __init__(
        self, alert_store: AlertStore, origins: Origins, clock: Clock, endpoints: Mapping[str, AlertsApi],
        throttle: LogThrottle, evidence: AlertEvidence, *, receiving_since: ReceivingSince = always,
        absent_for: timedelta = ABSENT, unlisted_for: timedelta = ABSENT_UNLISTED,
    ) -> None:  # fmt: skip
        self._alert_store = alert_store
        self._origins = origins
        self._clock = clock
        self._polling = Polling(endpoints, throttle)
        self._evidence = evidence
        self._receiving_since = receiving_since
        self._unanswered_since: datetime | None = None
        """Begin of the first of the latest polls that no Alertmanager answered; None: one answered the latest."""
        self._absent_for = absent_for
        self._unlisted_for = unlisted_for
        self._absent: dict[str, datetime] = {}
        """Time since which a firing alert has been absent at each poll, and was not posted, by key."""
        self._listed_at: dict[str, datetime] = {}
        """Time at which the API last listed a firing alert, silenced ones included, by key."""
        self._asked_at: datetime | None = None
        self._again_at: datetime | None = None
        self._one_at_a_time = asyncio.Lock()

    def looked_away(self) -> None:
        """Count absences again: what happened meanwhile was not seen."""
        self._absent.clear()

    def now(self) -> None:
        """Poll at the next call, and no more than once a second: posts may have been lost, and many one by one."""
        self._again_at = None if self._asked_at is None else self._asked_at + AT_MOST_EVERY

    def soon(self) -> None:
        """Poll within a few seconds: an alert came in that no poll has seen, or a poll came to no end."""
        if self._again_at is not None:
            self._again_at = min(self._again_at, self._clock.now() + SOON)

    async def reconcile(self, every: timedelta) -> None:
        """Poll all Alertmanagers, if it is time to. Raises Unavailable where the bucket does not answer."""
        async with self._one_at_a_time:
            now = self._clock.now()
            if self._again_at is None or now >= self._again_at:
                self._again_at = now + every
                try:
                    await self._reconcile()
                except (Unavailable, asyncio.CancelledError):
                    self.soon()
                    raise

    def needs_poll(self, state: AlertState, moment: datetime) -> bool:
        """True if only a poll can prove the state of an alert at this moment."""
        if state.status == "firing":
            return self._evidence.pollable and self._evidence.seen_at(state) < moment
        return self._is_believed(state) and self._evidence.over_at(state) < moment

    async def ask(self, not_before: datetime) -> None:
        """Poll now, unless a poll that began at `not_before` or later has ended meanwhile: one serves all who wait."""
        async with self._one_at_a_time:
            if self._asked_at is None or self._asked_at < not_before:
                await self._reconcile()

    async def _reconcile(self) -> None:
        if any(origin.believes for origin in self._origins.all):
            self._evidence.receiving_since = await self._receiving_since()
        self._asked_at = asked_at = self._clock.now()
        poll = await self._polling.poll()
        active: set[str] = set()
        changes = await self._of_known(poll, asked_at, active)
        async for found in sliced([*poll.listed.values()]):
            for opinion, origin in self._origins.of_listed(found.alert).items() if found.active else ():
                key = key_of(opinion, found.alert.fingerprint)
                if self._alert_store.alert_cache.held(key).state is None:
                    changes[key] = _opened(found, opinion, origin, asked_at)
                    active.add(key)
        await self._alert_store.change(changes)
        # Only now: what was known is not confirmed before all news of the same poll is known.
        self._evidence.unanswered_at = None if poll.answered else asked_at
        for key in active:
            self._evidence.active(key, asked_at)
        await self._note_recoveries(poll, asked_at)

    async def _note_recoveries(self, poll: Poll, asked_at: datetime) -> None:
        """Note which believed recoveries last: no Alertmanager lists the alert, or none can be asked.

        Where none has answered for long, it is as if there were none: a wrong URL keeps no traffic away for good.
        """
        self._unanswered_since = None if poll.answered else self._unanswered_since or asked_at
        if self._polling.endpoints and self._unanswered_since and asked_at - self._unanswered_since < self._absent_for:
            return
        async for key, state in sliced(self._alert_store.alert_cache.items()):
            if not self._is_believed(state):
                continue
            found = poll.listed.get(state.fingerprint)
            if found is not None and not is_late_firing(state, found.alert, asked_at):
                self._evidence.relapsed(key, asked_at)
            else:
                self._evidence.over(key, asked_at)

    def _is_believed(self, state: AlertState) -> bool:
        if not state.confirmed or state.status != "resolved":
            return False
        origin = self._origins.of_state(state)
        return origin is not None and origin.believes

    async def _of_known(self, poll: Poll, asked_at: datetime, active: set[str]) -> dict[str, Change]:
        """Give what becomes of what we remember, and add to `active` the keys of what fires."""
        changes: dict[str, Change] = {}
        absent: dict[str, datetime] = {}
        listed_at: dict[str, datetime] = {}
        async for key, state in sliced(self._alert_store.alert_cache.items()):
            found = poll.listed.get(state.fingerprint)
            origin = self._origins.of_state(state) if found else None
            if found and origin and (state.status == "firing" or found.active):
                listed_at[key] = asked_at
                change = self._still_there(state, found, origin, asked_at)
                if found.active:
                    active.add(key)
            elif state.status == "firing":
                listed_at[key] = self._listed_at.get(key, state.last_post_at)
                if poll.present is not None and state.fingerprint not in poll.present:
                    absent[key] = max(self._absent.get(key, asked_at), state.last_post_at)
                change = self._maybe_gone(state, asked_at, absent.get(key), max(listed_at[key], state.last_post_at))
            else:
                change = None
            if change:
                changes[key] = change
        self._absent, self._listed_at = absent, listed_at
        self._evidence.keep(self._alert_store.alert_cache.keys())
        return changes

    def _still_there(self, state: AlertState, found: ListedAlert, origin: Origin, asked_at: datetime) -> Change | None:
        seen_at = max(self._evidence.seen_at(state), state.last_post_at)
        known = (
            state.status == "firing"
            and state.listed
            and (not found.active or asked_at - state.last_post_at < LISTED_AGAIN)
            and not fires_again(state, found.alert, seen_at)
        )
        return None if known else _opened(found, state.opinion, origin, asked_at, seen_at)

    def _maybe_gone(
        self, state: AlertState, asked_at: datetime, absent_since: datetime | None, heard_at: datetime
    ) -> Change | None:
        """`heard_at`: when it was last posted or listed."""
        absent_for = self._absent_for if state.listed else self._unlisted_for
        # Never at the first look, which may race with Alertmanager's own garbage collection.
        if absent_since is not None and absent_since < asked_at and asked_at - absent_since >= absent_for:
            return _gone(state, asked_at, "no Alertmanager lists it any more")
        if asked_at - heard_at > self._silent_for(state):
            return _gone(state, asked_at, "it was neither posted nor listed for hours")
        return None

    def _silent_for(self, state: AlertState) -> timedelta:
        origin = self._origins.of_state(state)
        return max(SILENT, timedelta(seconds=origin.source.post_proves_seconds)) if origin else SILENT


def _gone(gone: AlertState, asked_at: datetime, why: str) -> Change:
    log.warning(
        "an alert was never resolved, and Alertmanager has it no more: Unknown until its recovery is proven",
        extra={"source": gone.source, "target": gone.target, "reason": why},
    )
    end = max(asked_at, gone.starts_at or asked_at)
    resolved = Alert(status="resolved", labels=gone.labels, endsAt=end, fingerprint=gone.fingerprint)

    def change(state: AlertState | None) -> AlertState | None:
        if state is None or state.status != "firing" or state.last_post_at > gone.last_post_at:
            return state  # it was posted while we asked
        return take(state, resolved, asked_at, opinion=state.opinion, believe=False)[0]

    return change


def _opened(
    found: ListedAlert, opinion: AlertOpinion, origin: Origin, asked_at: datetime, seen_at: datetime | None = None
) -> Change:
    """Change of the state of a listed alert. `seen_at`: time at which it was last seen to fire: one that began after
    that did not fire all the time."""

    def change(state: AlertState | None) -> AlertState | None:
        if state is None or state.status == "resolved":
            taken, fate = take(state, found.alert, asked_at, opinion=opinion, believe=origin.believes)
            if fate is not AlertOutcome.TAKEN:
                return state
            log.warning(
                "an alert fires that was not posted", extra={"source": opinion.source, "target": opinion.target}
            )
            return taken.model_copy(update={"listed": True})
        news: dict[str, object] = {} if state.listed else {"listed": True}
        if (
            seen_at
            and asked_at > state.last_post_at
            and fires_again(state, found.alert, max(seen_at, state.changed_at))
        ):
            news |= {"starts_at": found.alert.starts_at, "changed_at": asked_at, "last_post_at": asked_at}
        elif found.active and asked_at - state.last_post_at >= LISTED_AGAIN:
            news |= {"last_post_at": asked_at}
        return state.model_copy(update=news) if news else state

    return change
