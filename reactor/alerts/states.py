"""State of one alert, and its change by a post. Pure: no clock, no IO.

An episode lasts from the first firing to the resolved. Posts come twice (HA pairs, several routes, retries), again
(repeat_interval), out of order (redelivery, several routers) and not at all; the same posts in another order of arrival
lead to the same state, wherever their times tell which is newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from bus import subjects
from bus.messages import Health
from reactor.alerts.alert import Alert

LATE = timedelta(seconds=15)
"""Longest time by which an older post may come in after a newer one: Alertmanager's --cluster.peer-timeout, and longer
than a request may take here. Also the resolution of stored heartbeats, so that a group that is posted every 10 s costs
no write each time."""

SILENT = timedelta(hours=4, minutes=30)
"""Alertmanager's default repeat_interval and slack: a firing alert that was neither posted nor listed for this long
counts as one that ended without proof."""
LISTED_AGAIN = timedelta(hours=1)
"""Resolution with which `last_post_at` shows that an alert is still listed, so that a poll costs no write for each
alert."""


class AlertOutcome(StrEnum):
    """Outcome of one posted alert: the words of the metric reactor_webhook_alerts_total."""

    TAKEN = "taken"
    REPEATED = "repeated"
    IGNORED = "ignored"
    """Older than what is known, or the end of something that was never seen to begin."""
    UNMATCHED = "unmatched"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class AlertOpinion:
    """Source, signal and target of an observation: several alerts may feed one opinion."""

    source: str
    signal: str
    target: str


class AlertState(BaseModel):
    """One alert as one opinion remembers it. Identity: opinion and fingerprint, whatever startsAt and groupKey say."""

    model_config = ConfigDict(frozen=True, extra="allow")  # what a later release stored is written back

    source: str
    signal: str
    target: str
    fingerprint: str
    labels: dict[str, str]
    detail: str = ""
    status: Literal["firing", "resolved"]
    starts_at: AwareDatetime | None = None
    """Start in the newest post, by Prometheus' clock."""
    resolved_at: AwareDatetime | None = None
    """endsAt of the resolved, by Prometheus' clock; ours where it had none."""
    changed_at: AwareDatetime
    """Since when it has this status without a break, as far as posts and polls show: when the first of them came in."""
    last_post_at: AwareDatetime
    """Time at which it was last posted, to within LATE, or listed as active, to within LISTED_AGAIN."""
    opened: bool = True
    """False: only its resolved was ever seen. Kept so that a firing that comes in late does not open it."""
    confirmed: bool = False
    """Resolved, and proven or believed."""
    listed: bool = False
    """Alertmanager's API has shown it in this episode: from then on its absence there means something."""

    @cached_property
    def opinion(self) -> AlertOpinion:
        return AlertOpinion(self.source, self.signal, self.target)

    @cached_property
    def key(self) -> str:
        """Its key in the bucket. Kept, as the opinion is: no change of a state touches what they are made of."""
        return key_of(self.opinion, self.fingerprint)

    @property
    def told_at(self) -> datetime:
        """Time of the newest post or poll that it rests on."""
        return max(self.changed_at, self.last_post_at)

    @property
    def waits(self) -> bool:
        """True if it is resolved, acted on before, and not yet proven."""
        return self.status == "resolved" and self.opened and not self.confirmed


def key_of(opinion: AlertOpinion, fingerprint: str) -> str:
    """Give the key: the target is part of it, as several sources of one name may make several targets of one alert."""
    return subjects.key(opinion.source, fingerprint, opinion.signal, opinion.target)


def take(
    state: AlertState | None, alert: Alert, at: datetime, *, opinion: AlertOpinion, believe: bool
) -> tuple[AlertState, AlertOutcome]:
    """Fold in what was posted `at`, by the receiver's clock. The state given back is the same one if nothing changed.

    `believe`: resolved counts as recovered (onResolved: Healthy).
    """
    if state is None:
        opened = alert.status == "firing" or believe
        return _begin(
            alert, at, opinion, opened=opened, believe=believe
        ), AlertOutcome.TAKEN if opened else AlertOutcome.IGNORED
    if alert.status == state.status:
        if believe and alert.status == "resolved" and state.waits and not _late_resolved(state, alert, at):
            # Only its absence was known, which is never believed; now it is said.
            return _ended(state, alert, at, opinion, believe=True), AlertOutcome.TAKEN
        if alert.status == "resolved" and state.opened and _began_after(alert.starts_at, state.resolved_at):
            # Its firing never came: what was proven of the recovery before it counts no more.
            return _ended(state, alert, at, opinion, believe=believe), AlertOutcome.TAKEN
        return _heartbeat(state, alert, at), AlertOutcome.REPEATED
    if alert.status == "firing":
        if is_late_firing(state, alert, at):
            return state, AlertOutcome.IGNORED
        return _begin(alert, at, opinion, opened=True, believe=believe), AlertOutcome.TAKEN
    if _late_resolved(state, alert, at):
        return state, AlertOutcome.IGNORED
    return _ended(state, alert, at, opinion, believe=believe), AlertOutcome.TAKEN


def _begin(alert: Alert, at: datetime, opinion: AlertOpinion, *, opened: bool, believe: bool) -> AlertState:
    resolved = alert.status == "resolved"
    return AlertState(
        source=opinion.source, signal=opinion.signal, target=opinion.target, fingerprint=alert.fingerprint,
        labels=alert.labels, detail=alert.detail, status=alert.status, starts_at=alert.starts_at,
        resolved_at=(_end(alert) or at) if resolved else None, changed_at=at, last_post_at=at, opened=opened,
        confirmed=resolved and believe,
    )  # fmt: skip


def _ended(state: AlertState, alert: Alert, at: datetime, opinion: AlertOpinion, *, believe: bool) -> AlertState:
    ended = _begin(alert, at, opinion, opened=True, believe=believe)
    return ended.model_copy(update={"starts_at": alert.starts_at or state.starts_at})


def _heartbeat(state: AlertState, alert: Alert, at: datetime) -> AlertState:
    anew = state.status == "firing" and at > state.last_post_at and fires_again(state, alert, state.last_post_at)
    if at < state.last_post_at + LATE and not anew:
        return state
    if state.status == "resolved":
        # Once more the same end, or the end of an episode whose firing never came: the later one counts.
        end = _end(alert)
        newer = end is not None and state.resolved_at is not None and end > state.resolved_at
        return state.model_copy(update={"resolved_at": end, "last_post_at": at}) if newer else state
    # A startsAt that moved is no new episode, unless it moved past what was last seen. What is seen again after a
    # long silence is known from now on only.
    changed_at = at if anew or at - state.last_post_at > SILENT else state.changed_at
    new = {"starts_at": alert.starts_at, "detail": alert.detail, "last_post_at": at, "changed_at": changed_at}
    return state.model_copy(update=new)


def fires_again(state: AlertState, alert: Alert, seen_at: datetime) -> bool:
    """True if a firing alert ended and began again after it was last seen, so that it did not fire without a break."""
    return _began_after(alert.starts_at, seen_at) and _began_after(alert.starts_at, state.starts_at)


def is_late_firing(state: AlertState, alert: Alert, at: datetime) -> bool:
    """True if a firing that came in `at` is older than the resolved that is known."""
    if _began_after(alert.starts_at, state.resolved_at):
        return False
    if at <= state.last_post_at:
        return True
    if alert.updated_at is not None:
        return not _began_after(alert.updated_at, state.resolved_at)
    # The same episode fires again, after Prometheus was away: long after the resolved it is news, before that an echo.
    return at < state.last_post_at + LATE


def _late_resolved(state: AlertState, alert: Alert, at: datetime) -> bool:
    if _began_after(state.starts_at, _end(alert)):
        return True
    return at <= state.last_post_at - LATE


def _end(alert: Alert) -> datetime | None:
    """End of a resolved alert, never before its start: then the sender's clock was ahead, and was set right since."""
    if alert.ends_at is None or alert.starts_at is None:
        return alert.ends_at
    return max(alert.ends_at, alert.starts_at)


def _began_after(start: datetime | None, end: datetime | None) -> bool:
    return start is not None and end is not None and start > end


def speaker(states: Iterable[AlertState]) -> AlertState | None:
    """Give the alert that speaks for an opinion: the worst. Firing, then resolved without proof, then recovered.

    None: there is nothing to say.
    """
    told = [state for state in states if state.opened]
    firing = [state for state in told if state.status == "firing"]
    rank = firing or [state for state in told if state.waits] or told
    return min(rank, key=lambda state: (state.changed_at, state.fingerprint), default=None)


def health_of(state: AlertState) -> Health:
    """Health of the target by an alert. Resolved alone is no proof."""
    if state.status == "firing":
        return Health.UNHEALTHY
    return Health.HEALTHY if state.confirmed else Health.UNKNOWN
