"""Limit on the targets of one source: labels that are ever new ones must not fill memory, store and bus.

Beyond the limit, which is the source's `maxTargets`, what is said of further targets is refused: counted each time, and
logged once for as long as the source is at its limit.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

from prometheus_client import Counter

from reactor.runtime import telemetry
from reactor.runtime.clock import Clock

FORGOTTEN_SECONDS = 3600.0
"""A target that was not spoken of for so long gives its place to another one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceLimit:
    """One of the limits of a source."""

    name: str
    text: str
    refused: Counter


TARGETS = SourceLimit("maxTargets", "a source has too many targets", telemetry.targets_refused)
ALERTS = SourceLimit("maxAlerts", "a source has too many alerts", telemetry.alerts_refused)


class Refusals:
    """Tells of what one source is not allowed to say."""

    def __init__(self, source: str, most: int, limit: SourceLimit = TARGETS) -> None:
        """`source`: as metrics and logs name it."""
        self._source = source
        self._most = most
        self._limit = limit
        self._told = False

    def add(self, target: str) -> None:
        """Count one, and log it if it is the first for a while."""
        self._limit.refused.labels(self._source).inc()
        if not self._told:
            extra = {"source": self._source, "target": target, "limit": self._limit.name}
            log.warning("%s, further ones are refused: %d", self._limit.text, self._most, extra=extra)
        self._told = True

    def over(self) -> None:
        """Take note that there is room again: the next one is news."""
        self._told = False


class TargetLimit:
    """The targets that a source of another process has spoken of, the longest unheard first. In memory alone."""

    def __init__(self, source: str, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._heard_at: OrderedDict[str, float] = OrderedDict()
        self._refusals = Refusals(source, most)

    def admits(self, target: str) -> bool:
        """True if the source may observe this target; if not, that is counted and logged."""
        now = self._clock.monotonic()
        if target not in self._heard_at and not self._has_room(now):
            self._refusals.add(target)
            return False
        self._heard_at[target] = now
        self._heard_at.move_to_end(target)
        return True

    def _has_room(self, now: float) -> bool:
        if len(self._heard_at) < self._most:
            self._refusals.over()
            return True
        oldest, heard_at = next(iter(self._heard_at.items()))
        if now - heard_at < FORGOTTEN_SECONDS:
            return False
        del self._heard_at[oldest]
        return True
