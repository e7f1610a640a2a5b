"""Limits on the new targets and alerts of alert sources: each has room for its `maxTargets` and `maxAlerts`.

What the bucket holds counts, so a restart makes no room. What was let in counts from then on, although its alert is
written only later, or never: its place is kept for a minute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from reactor.alerts.cache import AlertCache
from reactor.alerts.states import AlertOpinion, key_of
from reactor.runtime.clock import Clock
from reactor.sources.target_limit import ALERTS, TARGETS, Refusals, SourceLimit
from rules.rulefile.sources import AlertmanagerWebhook

KEPT_SECONDS = 60.0
LOOK_SECONDS = 1.0
Name = TypeVar("Name", bound=Hashable)


class Admission:
    """Admits targets and alerts by the number that each source has."""

    def __init__(self, alert_cache: AlertCache, clock: Clock) -> None:
        self._targets = _Places[AlertOpinion](TARGETS, alert_cache.knows, alert_cache.targets_of, clock)
        self._alerts = _Places[str](ALERTS, alert_cache.has, alert_cache.alerts_of, clock)

    def admits(self, opinion: AlertOpinion, fingerprint: str, source: AlertmanagerWebhook) -> bool:
        """True if the source may have this alert of this target; counted and logged where it may not."""
        if not self._targets.admits(opinion, source.name, source.max_targets, told=opinion.target):
            return False
        key = key_of(opinion, fingerprint)
        return self._alerts.admits(key, source.name, source.max_alerts, told=opinion.target)

    def written(self, alerts: Iterable[tuple[str, AlertOpinion]]) -> None:
        """Take note that these may be in the bucket by now, by their keys, so that they do not count twice."""
        for key, opinion in alerts:
            self._targets.written(opinion, opinion.source)
            self._alerts.written(key, opinion.source)


class _Places(Generic[Name]):
    """The places of one limit, each source its own."""

    def __init__(
        self, limit: SourceLimit, is_there: Callable[[Name], bool], count: Callable[[str], int], clock: Clock
    ) -> None:  # fmt: skip
        """`is_there`, `count`: what the bucket has, of all and of one source."""
        self._limit = limit
        self._is_there = is_there
        self._in_bucket = count
        self._clock = clock
        self._let_in: defaultdict[str, dict[Name, float]] = defaultdict(dict)
        """Monotonic time at which each name was let in that was not in the bucket then, by source."""
        self._looked_at: dict[str, float] = {}
        """Monotonic time of the last look for these in the bucket, by source."""
        self._refusals: dict[str, Refusals] = {}

    def admits(self, name: Name, source: str, most: int, *, told: str) -> bool:
        """True if there is a place for `name`; counted where there is none, and logged as an alert of `told`."""
        if self._is_there(name) or name in self._let_in[source]:
            return True
        refusals = self._refusals.setdefault(source, Refusals(source, most, self._limit))
        if not self._has_room(source, most):
            refusals.add(told)
            return False
        refusals.over()
        self._let_in[source][name] = self._clock.monotonic()
        return True

    def written(self, name: Name, source: str) -> None:
        if self._is_there(name):
            self._let_in[source].pop(name, None)

    def _has_room(self, source: str, most: int) -> bool:
        if self._count(source) >= most:
            self._look(source)
        return self._count(source) < most

    def _count(self, source: str) -> int:
        return self._in_bucket(source) + len(self._let_in[source])

    def _look(self, source: str) -> None:
        """Forget who is in the bucket by now, or never came there. Seldom: a flood asks for each."""
        now = self._clock.monotonic()
        if now - self._looked_at.get(source, float("-inf")) < LOOK_SECONDS:
            return
        self._looked_at[source] = now
        self._let_in[source] = {
            name: at
            for name, at in self._let_in[source].items()
            if now - at < KEPT_SECONDS and not self._is_there(name)
        }
