"""How the groups of this process stand, as gauges: for as long as it is so, and no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client import Gauge

from reactor.runtime import telemetry
from rules.core.group import Group
from rules.rulefile.model import Rule
from rules.summary import State, is_failed_over, state_of

Labels = tuple[str, ...]


class Series:
    """The series of one gauge: those that have changed are set, those that are no more are taken away."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._last: Mapping[Labels, int] = {}
        gauge.clear()

    def are(self, values: Mapping[Labels, int]) -> None:
        """Let the gauge have these series and no other."""
        for labels in self._last.keys() - values.keys():
            self._gauge.remove(*labels)
        for labels, value in values.items():
            if self._last.get(labels) != value:
                self._gauge.labels(*labels).set(value)
        self._last = dict(values)


class Measures:
    """The gauges about rules. A new one forgets what an older one has set."""

    def __init__(self) -> None:
        self._states = Series(telemetry.rule_state)
        self._failed_over = Series(telemetry.failed_over)
        self._held = Series(telemetry.held)

    def take(self, groups: Iterable[Group], rules: Mapping[str, Rule]) -> None:
        """Measure these groups. Guards and other groups of the reactor's own are none of a rule's."""
        states: Counter[Labels] = Counter()
        failed_over: Counter[Labels] = Counter()
        held: Counter[Labels] = Counter()
        for group in groups:
            if group.rule.startswith("@"):
                continue
            states[group.rule, state_of(group).value] += 1
            failed_over[group.rule,] += is_failed_over(group, rules.get(group.rule))
            if group.held is not None:
                held[group.rule, group.held.reason] += 1
        names = {labels[0] for labels in states}
        self._states.are({(name, state.value): states[name, state.value] for name in names for state in State})
        self._failed_over.are(failed_over)
        self._held.are(held)
