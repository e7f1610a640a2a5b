"""Watches a book decide, and notes what a backtest tells: windows that closed, reactions, recoveries, holds."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bus.messages import Action, Fact, Health, Hold, Notify, SetWeights
from rules.catalog import kind_of
from rules.core.group import Group
from rules.core.member import Member
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.engine.subscriptions import RuleObject
from rules.kinds.traffic.backends import service_target
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_interests import named_ref
from rules.rehearsal.backtest.rule_story import (
    COLUMNS,
    HEALTHY,
    UNHEALTHY,
    UNHEARD,
    UNKNOWN,
    Act,
    Lane,
    Move,
    RuleTimeline,
    ToleratedOutage,
    Wait,
)
from rules.rehearsal.simulation import Emitted, second
from rules.rulefile.model import Rule

_COLUMN = {Health.HEALTHY: HEALTHY, Health.UNKNOWN: UNKNOWN, Health.UNHEALTHY: UNHEALTHY}


@dataclass(slots=True)
class _Seen:
    """Last known health of a member, and the actions that it led to."""

    lane: Lane
    since: float
    """From when on `column` is drawn."""
    column: int = UNHEARD
    bad_since: float | None = None
    """Since when it is bad, tolerated or not; None: it is not."""
    settled_bad: bool = False
    open_acts: tuple[Act, ...] = ()
    """Actions that it led to, until it recovers."""


class BacktestWatch:
    """Notes for all rules of one play."""

    def __init__(
        self, rules: Iterable[Rule], first: float, until: float, blind: Mapping[str, Mapping[str, str]],
        asking: Collection[str],
    ) -> None:  # fmt: skip
        """`blind`: by rule, the signals that need traffic. `asking`: the rules that ask people."""
        self.stories = {rule.name: RuleTimeline(rule, blind[rule.name], rule.name in asking) for rule in rules}
        self._first = first
        self._until = until
        self._primaries = {rule.name: primary_target(rule) for rule in rules}
        self._seen: dict[tuple[str, str, str], _Seen] = {}
        self._waiting: dict[RuleObject, Wait] = {}
        self._away: dict[RuleObject, float] = {}

    def decided(self, decisions: Sequence[Decision], now: datetime) -> None:
        """Look at groups after a decision."""
        moment = second(now)
        for decision in decisions:
            group = decision.group
            if group.rule not in self.stories:
                continue  # a guard that several rules share counts its peers: that is no rule's story
            for target, member in group.members.items():
                self._member(group, target, member, moment)
            waiting = self._waiting.get((group.rule, group.object))
            if waiting is not None and (group.held is None or group.held.reason != waiting.reason):
                waiting.until = moment
                del self._waiting[group.rule, group.object]

    def said(self, said: Emitted) -> None:
        """Note what came out."""
        what = said.what
        story = self.stories[what.rule]
        if isinstance(what, Hold):
            wait = Wait(said.at, what.object, what.held, what.detail)
            self._waiting[what.rule, what.object] = wait
            if story.room():
                story.waits.append(wait)
        elif isinstance(what, Notify) == kind_of(story.rule).tells:
            # Else it is a rule's word to people about its own doing, which is here already.
            self._act(story, what, said)

    def finish(self) -> None:
        """The range is over: close what is still open."""
        for seen in self._seen.values():
            self._draw(seen, self._until)
        for wait in self._waiting.values():
            wait.until = self._until
        for (rule, object_), since in self._away.items():
            self.stories[rule].away.append((object_, since, self._until))
        for story in self.stories.values():
            story.away.sort(key=lambda span: (span[1], span[0]))

    def _act(self, story: RuleTimeline, action: Action, said: Emitted) -> None:
        key = (action.rule, action.object)
        target = self._primaries[action.rule] if isinstance(story.rule, TrafficFailover) else action.object
        seen = self._seen.get((*key, target)) if target is not None else None
        home = _home(story.rule, action, seen)
        act = Act(said.at, action, said.because, _move(home=home, was_away=key in self._away))
        if act.move is Move.AWAY:
            self._away[key] = said.at
            act.target = target
            if seen is not None:
                act.bad_since = seen.bad_since
                seen.open_acts = (*seen.open_acts, act)
        elif act.move is Move.HOME:
            story.away.append((action.object, self._away.pop(key), said.at))
        if story.room():
            story.acts.append(act)

    def _member(self, group: Group, target: str, member: Member, now: float) -> None:
        story = self.stories[group.rule]
        key = (group.rule, group.object, target)
        seen = self._seen.get(key)
        if seen is None:
            lane = story.lanes[group.object, target] = Lane(group.object, target)
            seen = self._seen[key] = _Seen(lane, self._first)
        column = _COLUMN[member.status]
        if column != seen.column:
            self._draw(seen, now)
            seen.column = column
        if member.status is Health.HEALTHY:
            for act in seen.open_acts:
                act.recovered_at = now
            seen.open_acts = ()
        self._windows(story, group, seen, member, now)

    def _windows(self, story: RuleTimeline, group: Group, seen: _Seen, member: Member, now: float) -> None:
        window = member.window if member.window is not None and not member.window.healthy else None
        if window is not None or member.settled is False:
            if seen.bad_since is None:
                seen.bad_since = second(window.since if window is not None else member.since)
            seen.settled_bad |= member.settled is False
            return
        if seen.bad_since is not None and not seen.settled_bad and story.room():
            story.flaps.append(ToleratedOutage(seen.bad_since, group.object, seen.lane.target, now - seen.bad_since))
        seen.bad_since, seen.settled_bad = None, False

    def _draw(self, seen: _Seen, until: float) -> None:
        """Paint the state from the last change until now; a column that saw several keeps the worst."""
        length = self._until - self._first
        if until > seen.since:
            seen.lane.note(seen.since, seen.column)
        first, last = (
            min(COLUMNS - 1, max(0, int((moment - self._first) / length * COLUMNS))) if length else 0
            for moment in (seen.since, until)
        )
        columns = seen.lane.columns
        for index in (first, last):
            columns[index] = max(columns[index], seen.column)
        if last - first > 1:
            columns[first + 1 : last] = bytes([seen.column]) * (last - first - 1)
        seen.lane.bad_seconds += (until - seen.since) * (seen.column == UNHEALTHY)
        seen.lane.unknown_seconds += (until - seen.since) * (seen.column == UNKNOWN)
        seen.since = until


def primary_target(rule: Rule) -> str | None:
    """Target whose health decides whether a rule acts; None: the rule reads that from its route."""
    if not isinstance(rule, TrafficFailover) or (ref := named_ref(rule)) is None or not rule.backends:
        return None
    first = next((one for one in rule.backends if one.service == rule.primary), rule.backends[0])
    return first.target or service_target(ref, first.service)


def _home(rule: Rule, action: Action, seen: _Seen | None) -> bool:
    """True if the action leads to the healthy state: only the primary has weight, or the target is settled
    as healthy."""
    if not isinstance(action, SetWeights) or not isinstance(rule, TrafficFailover):
        return seen is None or not seen.settled_bad
    primary = rule.primary or next(iter(action.weights), None)
    return all((weight > 0) == (service == primary) for service, weight in action.weights.items())


def _move(*, home: bool, was_away: bool) -> Move:
    if home == was_away:
        return Move.HOME if home else Move.AWAY
    return Move.BETWEEN


class Recorder(GroupStore):
    """A book that shows its decisions to a watch."""

    def __init__(self, routing: Routing, watch: BacktestWatch) -> None:
        super().__init__(routing)
        self._watch = watch

    def apply(
        self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = (), *, known: bool = True
    ) -> list[Decision]:
        """Decide, and let the watch look."""
        decisions = super().apply(facts, now, positions, known=known)
        self._watch.decided(decisions, now)
        return decisions

    def fire_due(self, now: datetime, *, at_most: int = sys.maxsize) -> list[Decision]:
        """Decide, and let the watch look."""
        decisions = super().fire_due(now, at_most=at_most)
        self._watch.decided(decisions, now)
        return decisions
