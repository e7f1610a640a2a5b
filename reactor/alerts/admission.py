"""Which new targets the sources of alerts may speak of: each source has room for its `maxTargets`.

What stands in the bucket counts, so a restart makes no room. A target that was let in counts from then on, although its
alert is written only later, or never: its place is kept for a minute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from reactor.alerts.cache import AlertCache
from reactor.alerts.states import Opinion
from reactor.runtime.clock import Clock
from reactor.sources.target_limit import Refusals

KEPT_SECONDS = 60.0
LOOK_SECONDS = 1.0


class Admission:
    """Knows whose targets are how many."""

    def __init__(self, alert_cache: AlertCache, clock: Clock) -> None:
        self._alert_cache = alert_cache
        self._clock = clock
        self._let_in: defaultdict[str, dict[Opinion, float]] = defaultdict(dict)
        """By source: when each target was let in whose alerts were not in the bucket then."""
        self._looked_at: dict[str, float] = {}
        """By source: when it was last looked whose alerts are in the bucket by now."""
        self._refusals: dict[str, Refusals] = {}

    def admits(self, opinion: Opinion, most: int) -> bool:
        """Whether the source may have this target; counted and told where it may not. `most`: its `maxTargets`."""
        if self._alert_cache.knows(opinion) or opinion in self._let_in[opinion.source]:
            return True
        refusals = self._refusals.setdefault(opinion.source, Refusals(opinion.source, most))
        if not self._has_room(opinion.source, most):
            refusals.add(opinion.target)
            return False
        refusals.over()
        self._let_in[opinion.source][opinion] = self._clock.monotonic()
        return True

    def written(self, opinions: Iterable[Opinion]) -> None:
        """Take note that their alerts may be in the bucket by now, so that they do not count twice."""
        for opinion in opinions:
            if self._alert_cache.knows(opinion):
                self._let_in[opinion.source].pop(opinion, None)

    def _has_room(self, source: str, most: int) -> bool:
        if self._count(source) >= most:
            self._look(source)
        return self._count(source) < most

    def _count(self, source: str) -> int:
        return self._alert_cache.targets_of(source) + len(self._let_in[source])

    def _look(self, source: str) -> None:
        """Forget who is in the bucket by now, or never came there. Seldom: a flood asks for each of its targets."""
        now = self._clock.monotonic()
        if now - self._looked_at.get(source, float("-inf")) < LOOK_SECONDS:
            return
        self._looked_at[source] = now
        self._let_in[source] = {
            opinion: at
            for opinion, at in self._let_in[source].items()
            if now - at < KEPT_SECONDS and not self._alert_cache.knows(opinion)
        }
