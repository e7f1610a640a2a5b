"""Up to which moment posts, polls and queries prove what is said of a target, as far as this process has seen.

A repeated word is no evidence. Where an Alertmanager can be asked, its answer is: a POST may have been written ten
seconds before it came in (Alertmanager tries the same one again and again), so it counts only while no answer comes.
That a believed recovery lasts is shown by a poll that does not list the alert, and only from when on receivers have
taken each POST: what fired and ended before, while none did, is neither posted nor listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import Health
from reactor.alerts.states import AlertState, health_of
from rules.rulefile.sources import AlertmanagerWebhook


@dataclass(frozen=True, slots=True)
class Proof:
    """Evidence behind an observation."""

    source: str = ""
    """The source that can be asked to look again; empty: none can."""
    until: datetime | None = None
    """The moment up to which the status is proven. None: by the observation's own time."""
    since: datetime | None = None
    """Time since which the status has been so without a break."""


class AlertEvidence:
    """Latest time at which each alert was seen to fire, and at which each recovery was confirmed."""

    def __init__(self, *, pollable: bool) -> None:
        """`pollable`: the settings name an Alertmanager to ask."""
        self.pollable = pollable
        self.unanswered_at: datetime | None = None
        """Begin of the latest poll, if no Alertmanager answered it; None: one did."""
        self.receiving_since: datetime | None = None
        """Time since when receivers have taken each POST, as known at the latest poll; None: not known."""
        self._active: dict[str, datetime] = {}
        self._over: dict[str, datetime] = {}
        self._relapsed: dict[str, datetime] = {}
        self._posted: dict[str, datetime] = {}
        self._asked: dict[str, datetime] = {}
        self._confirmed: dict[str, datetime] = {}

    def active(self, key: str, at: datetime) -> None:
        """A poll that began then found the alert active: neither silenced nor inhibited."""
        self._active[key] = at

    def over(self, key: str, at: datetime) -> None:
        """A poll that began then did not find an alert that is resolved."""
        self._over[key] = at

    def relapsed(self, key: str, at: datetime) -> None:
        """A poll that began then found an alert that is resolved: it fires again, silenced or inhibited."""
        self._over.pop(key, None)
        self._relapsed[key] = at

    def posted(self, key: str, at: datetime) -> None:
        """A POST that came in then said that the alert fires."""
        self._posted[key] = max(at, self._posted.get(key, at))

    def asked(self, key: str, at: datetime, *, confirmed: bool) -> None:
        """A query about the recovery began then, and ended."""
        self._asked[key] = at
        if confirmed:
            self._confirmed[key] = at

    def asked_since(self, key: str, moment: datetime) -> bool:
        """True if a query about the recovery began at `moment` or later, and has ended."""
        asked_at = self._asked.get(key)
        return asked_at is not None and asked_at >= moment

    def keep(self, keys: Collection[str]) -> None:
        """Forget all other alerts."""
        for known in (self._active, self._over, self._relapsed, self._posted, self._asked, self._confirmed):
            for key in [key for key in known if key not in keys]:
                del known[key]

    def seen_at(self, state: AlertState) -> datetime:
        """Time at which a firing alert was last seen to fire."""
        posted_at = max(state.last_post_at, self._posted.get(state.key, state.last_post_at))
        counts = not self.pollable or (self.unanswered_at is not None and posted_at <= self.unanswered_at)
        polled_at = max(state.changed_at, self._active.get(state.key, state.changed_at))
        return max(polled_at, posted_at) if counts else polled_at

    def over_at(self, state: AlertState) -> datetime:
        """Time at which a resolved alert was last seen to be over."""
        return max(state.changed_at, self._over.get(state.key, state.changed_at))

    def _over_since(self, state: AlertState) -> datetime:
        """Time since when it has been over without a break, as far as polls show it."""
        if state.key not in self._over:
            return state.changed_at
        known_since = self.receiving_since or state.changed_at
        return max(state.changed_at, known_since, self._relapsed.get(state.key, state.changed_at))

    def of(self, states: Iterable[AlertState], status: Health, source: AlertmanagerWebhook, *, lasting: bool) -> Proof:
        """Give what proves the status of a target. `states`: all its alerts. `lasting`: nothing more is said of it."""
        told = [state for state in states if state.opened and health_of(state) is status]
        if status is Health.UNHEALTHY:
            since, seen_at = min(state.changed_at for state in told), max(self.seen_at(state) for state in told)
            if self.pollable:
                return Proof(source.name, seen_at, since)
            return Proof("", seen_at + timedelta(seconds=source.post_proves_seconds), since)
        name = source.name if source.confirm else ""
        if status is Health.UNKNOWN:
            return Proof(name)
        if source.on_resolved == "Healthy" and not lasting:
            seen_at = min(self.over_at(state) for state in told)
            return Proof(source.name, seen_at, max(self._over_since(state) for state in told))
        name = "" if lasting else name
        since = max(state.changed_at for state in told)
        asked_at = (self._confirmed.get(state.key, state.changed_at) for state in told)
        return Proof(name, max(since, *asked_at) if name else None, since)
