"""The state of the groups of this process as gauges: for as long as it is so, and no longer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bus.messages import Health
from reactor.runtime import telemetry
from reactor.runtime.slices import sliced
from rules.core.group import Group
from rules.core.reasons import Held
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, is_failed_over, state_of

if TYPE_CHECKING:
    from rules.engine.subscriptions import RuleObject

PROBLEMS = frozenset({Held.ROUTE_NOT_FOUND, Held.ROUTE_UNUSABLE, Held.UNKNOWN_PRIMARY, Held.ACTION_FAILED})
"""Holds that a person has to mend: they do not end with the outage."""

_STATES = tuple((state.value,) for state in GroupStatus)
_STATUSES = tuple((status.value,) for status in Health)
LOOKS = 1000
"""Groups that are looked at between two pauses of the loop."""


SAME_MAX = 1000
"""Different contributions that are kept to be shared: most groups have one of a few."""


class Measured(NamedTuple):
    """Contribution of one group to the gauges."""

    state: GroupStatus
    held: str | None
    failed_over: bool
    windows: int
    targets: tuple[tuple[str, int], ...]
    """Number of targets by status."""


class RuleTotals:
    """Sums of the gauges over the groups of one rule. A change of one group costs the same with ten thousand beside it:
    it is subtracted and added again."""

    def __init__(self) -> None:
        self.groups = self.failed_over = 0
        self.states, self.held, self.targets = Counter[str](), Counter[str](), Counter[str]()

    def add(self, one: Measured, times: int = 1) -> None:
        """Put what one group adds in; `times` -1: take it out."""
        self.groups += times
        self.failed_over += times * one.failed_over
        self.states[one.state.value] += times
        if one.held is not None:
            self.held[one.held] += times
        for status, count in one.targets:
            self.targets[status] += times * count


class Measures:
    """The gauges about groups. A new one forgets what an older one has set."""

    def __init__(self) -> None:
        self._rules: Mapping[str, Rule] = {}
        self._known: dict[str, dict[str, Measured]] = defaultdict(dict)
        """Contribution of each group, by rule and object."""
        self._same: dict[Measured, Measured] = {}
        """Each contribution once: ten thousand groups share it."""
        self._totals: dict[str, RuleTotals] = defaultdict(RuleTotals)
        self._windows = 0
        self._states = telemetry.rule_state
        self._failed_over = telemetry.failed_over
        self._held = telemetry.held
        self._problems = telemetry.rule_problems
        self._targets = telemetry.targets
        for series in (self._states, self._failed_over, self._held, self._problems, self._targets):
            series.clear()

    async def take(
        self, groups: Sequence[Group], rules: Mapping[str, Rule], *, gone: Collection[RuleObject] | None = None
    ) -> None:
        """Measure these groups. Guards and other groups of the reactor's own are none of a rule's.

        `gone`: those that are no more, where `groups` are only those that may have changed. None: these are all.
        """
        changed = set(self._known) if rules is not self._rules else set()
        self._rules = rules
        if changed:
            self._known.clear()
            self._totals.clear()
            self._windows = 0
        async for group in sliced(groups, size=LOOKS):
            known, measured = self._known[group.rule].get(group.object), self._measured(group)
            if known != measured:
                self._known[group.rule][group.object] = self._shared(measured)
                self._count(group.rule, known, -1)
                self._count(group.rule, measured)
                changed.add(group.rule)
        for rule in changed | self._forget(self._others(groups) if gone is None else gone):
            self._show(rule, self._totals[rule])
        telemetry.open_windows.set(self._windows)

    def _others(self, groups: Sequence[Group]) -> Collection[RuleObject]:
        """The groups that are known and are none of these."""
        if sum(map(len, self._known.values())) == len(groups):
            return ()
        there = {(group.rule, group.object) for group in groups}
        return [key for rule, of in self._known.items() for object_ in of if (key := (rule, object_)) not in there]

    def _count(self, rule: str, one: Measured | None, times: int = 1) -> None:
        if one is not None:
            self._totals[rule].add(one, times)
            self._windows += times * one.windows

    def _shared(self, one: Measured) -> Measured:
        if len(self._same) >= SAME_MAX:
            self._same.clear()
        return self._same.setdefault(one, one)

    def _measured(self, group: Group) -> Measured:
        windows = sum(member.window is not None for member in group.members.values())
        held = group.held.reason if group.held is not None else None
        away = is_failed_over(group, self._rules.get(group.rule))
        targets = Counter(member.status.value for member in group.members.values())
        return Measured(state_of(group), held, away, windows, tuple(sorted(targets.items())))

    def _forget(self, gone: Collection[RuleObject]) -> set[str]:
        """Forget these groups, as far as they are known. Give the rules that had them."""
        known = [(rule, self._known[rule].pop(object_, None)) for rule, object_ in gone]
        for rule, one in known:
            self._count(rule, one, -1)
        return {rule for rule, one in known if one is not None}

    def _show(self, rule: str, total: RuleTotals) -> None:
        if rule.startswith("@"):
            return
        there, targets = total.groups > 0, total.targets
        self._states.show(rule, {labels: total.states[labels[0]] for labels in _STATES} if there else {})
        self._failed_over.show(rule, {(): total.failed_over} if there else {})
        self._held.show(rule, {(reason,): count for reason, count in total.held.items() if count})
        known = any(targets.values())
        self._targets.show(rule, {labels: targets[labels[0]] for labels in _STATUSES} if known else {})
        problems = sum(total.held[reason] for reason in PROBLEMS)
        self._problems.show(rule, {(): problems} if problems else {})
