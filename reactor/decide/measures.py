"""The state of the groups of this process as gauges: for as long as it is so, and no longer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import Gauge

from bus.messages import Health
from reactor.runtime import telemetry
from reactor.runtime.slices import sliced
from rules.core.group import Group
from rules.core.reasons import Held
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, is_failed_over, state_of

PROBLEMS = frozenset({Held.ROUTE_NOT_FOUND, Held.ROUTE_UNUSABLE, Held.UNKNOWN_PRIMARY, Held.ACTION_FAILED})
"""Holds that a person has to mend: they do not end with the outage."""

LOOKS = 1000
"""Groups that are looked at between two pauses of the loop."""

Labels = tuple[str, ...]


class Measured(NamedTuple):
    """What one group adds to the gauges."""

    group: Group
    state: GroupStatus
    held: str | None
    failed_over: bool
    windows: int
    targets: Counter[str]
    """By status."""


class RuleSeries:
    """A gauge whose first label is a rule: its series are those that were last given for each rule, and no other."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._shown: dict[str, Mapping[Labels, int]] = {}
        gauge.clear()

    def show(self, rule: str, values: Mapping[Labels, int]) -> None:
        """Let the gauge have these series of the rule. `values`: by the labels behind the rule."""
        shown = self._shown.pop(rule, {})
        for labels in shown.keys() - values.keys():
            self._gauge.remove(rule, *labels)
        for labels, value in values.items():
            if shown.get(labels) != value:
                self._gauge.labels(rule, *labels).set(value)
        if values:
            self._shown[rule] = values


class Measures:
    """The gauges about groups. A new one forgets what an older one has set.

    A group is a value: one that is the same as at the last look is not measured again, and most are.
    """

    def __init__(self) -> None:
        self._rules: Mapping[str, Rule] = {}
        self._known: dict[str, dict[str, Measured]] = defaultdict(dict)
        """By rule and object."""
        self._states = RuleSeries(telemetry.rule_state)
        self._failed_over = RuleSeries(telemetry.failed_over)
        self._held = RuleSeries(telemetry.held)
        self._problems = RuleSeries(telemetry.rule_problems)
        self._targets = RuleSeries(telemetry.targets)

    async def take(self, groups: Sequence[Group], rules: Mapping[str, Rule]) -> None:
        """Measure these groups. Guards and other groups of the reactor's own are none of a rule's."""
        changed = set(self._known) if rules is not self._rules else set()
        self._rules = rules
        if changed:
            self._known.clear()
        async for group in sliced(groups, size=LOOKS):
            known = self._known[group.rule].get(group.object)
            if known is None or known.group is not group:
                self._known[group.rule][group.object] = self._measured(group)
                changed.add(group.rule)
        if sum(map(len, self._known.values())) > len(groups):
            changed |= self._forget({(group.rule, group.object) for group in groups})
        for rule in changed:
            self._show(rule, self._known[rule].values())
        telemetry.open_windows.set(sum(one.windows for of in self._known.values() for one in of.values()))

    def _measured(self, group: Group) -> Measured:
        windows = sum(member.window is not None for member in group.members.values())
        held = group.held.reason if group.held is not None else None
        away = is_failed_over(group, self._rules.get(group.rule))
        targets = Counter(member.status.value for member in group.members.values())
        return Measured(group, state_of(group), held, away, windows, targets)

    def _forget(self, there: Collection[tuple[str, str]]) -> set[str]:
        """Forget the groups that are not there any more. Give the rules that had them."""
        gone = [(rule, object_) for rule, of in self._known.items() for object_ in of if (rule, object_) not in there]
        for rule, object_ in gone:
            del self._known[rule][object_]
        return {rule for rule, _ in gone}

    def _show(self, rule: str, groups: Collection[Measured]) -> None:
        if rule.startswith("@"):
            return
        states = Counter(one.state for one in groups)
        held = Counter(one.held for one in groups if one.held is not None)
        there = bool(groups)
        self._states.show(rule, {(state.value,): states[state] for state in GroupStatus} if there else {})
        self._failed_over.show(rule, {(): sum(one.failed_over for one in groups)} if there else {})
        self._held.show(rule, {(reason,): count for reason, count in held.items()})
        targets = sum((one.targets for one in groups), Counter[str]())
        self._targets.show(rule, {(status.value,): targets[status.value] for status in Health} if targets else {})
        problems = sum(held[reason] for reason in PROBLEMS)
        self._problems.show(rule, {(): problems} if problems else {})
