"""Limits the targets and objects of each source outside of the reactor, to the number of its rule file or the default.

Counted in memory, by each router for itself: with two routers a source may have twice as many, and after a restart of
as many others.
"""

from __future__ import annotations

from collections.abc import Mapping

from bus import subjects
from reactor.runtime.clock import Clock
from reactor.sources.target_limit import TargetLimit
from rules.rulefile.sources import TARGETS_MAX

STRANGERS_MAX = 1000
"""Sources that no rule file names; those beyond share the places of one. The bus lets only those publish who were
given the right to."""
UNKNOWN = "unknown"
"""Label in metrics for a source that no rule file names: a stranger must not make new time series."""


class Spoken:
    """Target limit of each source, by its name."""

    def __init__(self, targets_max: Mapping[str, int], clock: Clock, *, others_max: int = TARGETS_MAX) -> None:
        """`targets_max`: by the names of the sources of the rules. `others_max`: of each of the others."""
        self._most = targets_max
        self._others_most = others_max
        self._clock = clock
        self._limits: dict[str, TargetLimit] = {}

    def admits(self, subject: str, about: str) -> bool:
        """True if the publishers of this subject may name this target; if not, that is counted and logged."""
        source = subjects.source_in(subject)
        if source not in self._limits:
            if source not in self._most and len(self._limits) >= STRANGERS_MAX:
                source = ""
            named = source if source in self._most else UNKNOWN
            most = self._most.get(source, self._others_most)
            self._limits.setdefault(source, TargetLimit(named, most, self._clock))
        return self._limits[source].admits(about)
