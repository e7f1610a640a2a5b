"""Many groups, kept by one reader: facts in, decisions out. Used live for a partition, and in every rehearsal.

It finds the groups that a fact concerns, opens groups as their things appear, and knows when to look again.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from bus.messages import (
    AcquireReply,
    Approve,
    Command,
    Fact,
    Observation,
    Outcome,
    Pause,
    Reject,
    Resume,
    Statement,
)
from rules.core.group import Group, updated
from rules.core.interests import object_of
from rules.core.kind import RuleKind
from rules.core.reader import ALWAYS
from rules.core.values import replace
from rules.engine.decide import Decision, decide
from rules.engine.evidence import Confirmation, Lack, confirmed
from rules.engine.group_codec import without_gone
from rules.engine.known_kinds import is_kept, is_of, kind_of, new_group, subscribing
from rules.engine.outbox import same
from rules.engine.pauses import PAUSES, Pauses, paused_by
from rules.engine.retention import as_it_counts, covers, mended
from rules.engine.routing import Routing, scope_of
from rules.engine.subscriptions import RuleObject, Subscriptions
from rules.engine.unbroken import lengthened
from rules.rulefile.model import Rule
from rules.rulefile.targets import matches

ALARMS_MIN = 1000
"""Smallest number of alarms kept before outdated ones are dropped; the limit is twice the number of groups if that is
more."""
_NONE: frozenset[str] = frozenset()


class GroupStore:
    """The groups of one reader."""

    def __init__(
        self, routing: Routing, groups: Iterable[Group] = (), *, mine: Callable[[str, str], bool] = lambda *_: True
    ) -> None:
        """`mine(rule, scope)`: whether the groups of this address belong into this book."""
        self._routing = routing
        self._mine = mine
        self._groups: dict[RuleObject, Group] = {}
        self._of_rule: dict[str, set[RuleObject]] = defaultdict(set)
        self._rules_of: dict[str, frozenset[str]] = {}
        """By object, the rules that have a group of it."""
        self._same_rules: dict[frozenset[str], frozenset[str]] = {}
        """Each such set once: ten thousand objects of one rule share it."""
        self._watching = Subscriptions(routing)
        self._alarms: list[tuple[datetime, str, str]] = []
        """Time, rule and object of each: flat, as there are as many as groups."""
        self._lacking: set[RuleObject] = set()
        """Groups that wait for a look."""
        self.reader = ALWAYS
        """Current reader of the facts; set by a live process, left as it is by a rehearsal."""
        self._seen: dict[str, tuple[Rule, Rule]] = {}
        """By name, each rule as it was loaded, and with what clocks differ by: the same one for all of its groups."""
        self.dropped: set[RuleObject] = set()
        """Groups that are no more; the process that stores groups deletes them, and clears this."""
        self._changed: set[RuleObject] = set()
        groups = list(groups)
        self._pauses = Pauses(group for group in groups if group.rule == PAUSES)
        for group in groups:
            rule = routing.rules.get(group.rule)
            if group.rule == PAUSES:
                continue
            if rule is None or not is_of(rule, group) or not covers(rule, group.object):
                # No rule decides for it any more; kept, it would owe its last action without end. What it changed in
                # the world stays stored: its rule is kept for the way back, and comes with a later rule set.
                if not is_kept(group):
                    self.dropped.add((group.rule, group.object))
            elif mine(group.rule, scope_of(rule, group.object)):
                self._keep(self._pauses.named(as_it_counts(routing, group)))
        for group in [
            group for group in self._groups.values() if group.object == self._kind_of(_key(group)).shared_object
        ]:
            others = [self._groups[key] for key in self._of_rule[group.rule] if key != _key(group)]
            for one in mended(routing, group, others):
                self._keep(one)
        for name, object_, scope in routing.named:
            if mine(name, scope) and (name, object_) not in self._groups:
                self._open(name, object_)

    @property
    def groups(self) -> Mapping[RuleObject, Group]:
        """All groups, by rule and object."""
        return self._groups

    @property
    def rules(self) -> Mapping[str, Rule]:
        """All rules that it decides by, those that the reactor makes itself included."""
        return self._routing.rules

    def take_changed(self) -> Set[RuleObject]:
        """Give the groups that are others than when this was last asked, or are no more: for who looks at all of them
        again and again."""
        changed, self._changed = self._changed, set()
        return changed

    def stored(self, key: RuleObject) -> Group:
        """Give what is to be stored under this key: a group, or a pause."""
        return self._pauses.group(key[1]) if key[0] == PAUSES else self._groups[key]

    def reconsider(self, now: datetime) -> None:
        """Have `ring` decide for the groups whose rules say something else than when they were last decided.

        A window that is shorter now may be over already, and its alarm be set for later. One that is longer now may
        have run out as it was, and its act be still to come.
        """
        for key, group in list(self._groups.items()):
            if group.digest and group.digest != self._routing.digest(key[0]):
                rule = self._rule(key[0])
                members = {target: lengthened(member, rule) for target, member in group.members.items()}
                self._keep(updated(group, members=members, next_deadline=min(group.next_deadline or now, now)))

    def next_alarm(self) -> datetime | None:
        """Time of the next alarm for `ring`; None: no alarm is set."""
        while self._alarms:
            at, rule, object_ = self._alarms[0]
            group = self._groups.get((rule, object_))
            if group is not None and group.next_deadline == at:
                return at
            heapq.heappop(self._alarms)
        return None

    def gains(self, facts: Iterable[Fact]) -> bool:
        """True if one of `facts` subscribes a group to more targets, so that earlier observations of these must be
        replayed."""
        return any(
            (key in self._groups or self._may_open(rule, key[1], fact)) and self._watching.gained(key, fact)
            for fact in facts
            if type(fact) in subscribing()
            for rule, objects in self._routing.concerned(fact, self._there(fact))
            for key in ((rule.name, object_) for object_ in objects)
        )

    def recall(self, observations: Iterable[Observation]) -> None:
        """Know what a reader before us has heard, for groups that gain targets."""
        for one in observations:
            self._watching.heard(one)

    def apply(
        self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = (), *, known: bool = True
    ) -> list[Decision]:
        """Fold facts in that were read together, and decide once for every group that they concern.

        `positions`: each fact's place in its stream; a group that was stored at that place or a later one has had it.
        `known`: whether all is known that came in before `now`; otherwise these groups wait for the next `ring`.
        """
        touched: dict[RuleObject, list[Fact]] = defaultdict(list)
        placed = list(zip(facts, positions or [0] * len(facts), strict=True))
        pauses: list[Decision] = []
        # These last: a group that opens with its inventory then finds all that was heard in the same instant.
        for fact, position in sorted(placed, key=lambda one: type(one[0]) in subscribing()):
            if not isinstance(fact, Observation) and isinstance(fact, Pause | Resume):
                pauses += [Decision(group) for group in self._pauses.take(fact)]
                self.dropped |= self._pauses.dropped
            for key in self._concerned(fact):
                if not position or self._groups[key].position < position:
                    if type(fact) in subscribing():
                        touched[key] += self._watching.earlier(key, fact)
                    touched[key].append(fact)
        return [*pauses, *self._decide_all(touched, now, max(positions, default=0), known=known)]

    def fire_due(self, now: datetime, *, at_most: int = sys.maxsize) -> list[Decision]:
        """Decide for every group whose deadline has passed, or for `at_most` of them, the earliest first."""
        self.dropped |= self._pauses.end(now)
        due: dict[RuleObject, list[Fact]] = {}
        while len(due) < at_most and (at := self.next_alarm()) is not None and at <= now:
            _, rule, object_ = heapq.heappop(self._alarms)
            due[rule, object_] = []
        return self._decide_all(due, now, 0)

    def confirmed_by(self, rule: str, object_: str) -> frozenset[RuleObject]:
        """The groups by which `confirm` answers: the one that asked for it, and what its rule knows together."""
        key = self._owner(rule, object_)
        shared = self._kind_of(key).shared_object if rule in self._routing.rules else None
        return frozenset({key} if shared is None else {key, (rule, shared)})

    def _owner(self, rule: str, object_: str) -> RuleObject:
        """The group that asks for actions on this object."""
        known = self._routing.rules.get(rule)
        return (rule, object_ if known is None else kind_of(known).owner(known, object_))

    def confirm(self, rule: str, object_: str, action: str, since: datetime, now: datetime) -> Confirmation:
        """Say whether an action is wanted still, by what was seen at `since` or later."""
        known = self._rule(rule) if rule in self._routing.rules else None
        key = self._owner(rule, object_)
        group = self._groups.get(key)
        if known is None or group is None:
            return Confirmation(wanted=False, detail=f"no rule here decides for {object_}")
        entry = next((entry for entry in group.outbox if entry.action.id == action), None)
        if entry is None or not entry.wanted:
            return Confirmation(wanted=False, detail="it is no longer asked for")
        shared_group = self._shared_group(key)
        # Who asks has written nothing of it yet.
        outbox = tuple(replace(one, ended=True) if one is entry else one for one in group.outbox)
        desired = kind_of(known).desire(known, updated(group, outbox=outbox), shared_group, now)
        act = next(
            (
                act
                for act in desired.acts
                if act.concurrency_key == entry.action.concurrency_key and same(entry.action, act)
            ),
            None,
        )
        if act is None:
            return Confirmation(wanted=False, detail="the rule no longer wants it")
        return confirmed(known, group, shared_group, act, since, now, self.reader)

    def ask(self, key: RuleObject, since: datetime, now: datetime) -> list[Lack]:
        """Have a group say its judgement by looks from `since` or later; gives the looks that it lacks."""
        group = self._groups.get(key)
        if group is None:
            return []
        group, missing = self._kind_of(key).asked(self._routing.rules[key[0]], group, since)
        self._keep(updated(group, next_deadline=now))
        return [Lack(source, target, since, signal) for source, target, signal in missing]

    def outstanding(self, now: datetime) -> list[Decision]:
        """Give what groups have to say to others that may have heard nothing: of a reader that died, words are lost."""
        decisions = []
        for key, group in sorted(self._groups.items()):
            rule = self._routing.rules[key[0]]
            facts = kind_of(rule).emits(rule, new_group(rule, key[1]), group, (), now)
            if facts:
                decisions.append(Decision(group, emits=facts))
        return decisions

    def _decide_all(
        self, touched: dict[RuleObject, list[Fact]], now: datetime, position: int, *, known: bool = True
    ) -> list[Decision]:
        """Decide for these groups; a shared group first, and where it has changed, for all that go by it."""
        decisions = []
        for key in sorted(key for key in touched if self._kind_of(key).shared_object == key[1]):
            before = self._groups[key]
            decisions.append(self._decide(key, touched.pop(key), now, position, known=known))
            others = (self._groups[other] for other in self._of_rule[key[0]] if other != key)
            for group in self._kind_of(key).dependents(self._routing.rules[key[0]], before, self._groups[key], others):
                touched.setdefault((group.rule, group.object), [])
            for other in self._lacking & self._of_rule[key[0]]:
                touched.setdefault(other, [])  # the look that it waits for may be one at what they know together
        rest = [self._decide(key, touched[key], now, position, known=known) for key in sorted(touched)]
        return [*decisions, *rest]

    def _kind_of(self, key: RuleObject) -> RuleKind[Any, Any]:
        return kind_of(self._routing.rules[key[0]])

    def _decide(self, key: RuleObject, facts: Sequence[Fact], now: datetime, position: int, *, known: bool) -> Decision:
        group, shared_group = self._groups[key], self._shared_group(key)
        rule, guards = self._rule(key[0]), self._routing.guards_of(key[0])
        decision = decide(
            rule, group, facts, now, shared_group, guards, known=known, reader=self.reader,
            digest=self._routing.digest(key[0]), position=position,
        )  # fmt: skip
        self._keep(without_gone(decision.group))
        (self._lacking.add if decision.lacks else self._lacking.discard)(key)
        return decision

    def _rule(self, name: str) -> Rule:
        """The rule as it counts for what this reader hears."""
        rule, skew = self._routing.rules[name], self.reader.skew
        if rule.skew == skew:
            return rule
        loaded, seen = self._seen.get(name, (rule, rule))
        if loaded is not rule or seen.skew != skew:
            seen = rule.seen_with(skew)
            self._seen[name] = rule, seen
        return seen

    def _shared_group(self, key: RuleObject) -> Group | None:
        shared_object = self._kind_of(key).shared_object
        return (
            self._groups.get((key[0], shared_object)) if shared_object is not None and shared_object != key[1] else None
        )

    def _keep(self, group: Group) -> None:
        key = (group.rule, group.object)
        before = self._groups.get(key)
        self._watching.keep(group, before)
        self._groups[key] = group
        self._changed.add(key)
        if before is None:
            self._of_rule[group.rule].add(key)
            self._have_rules(group.object, self._rules_of.get(group.object, _NONE) | {group.rule})
        if group.next_deadline is not None and (before is None or before.next_deadline != group.next_deadline):
            heapq.heappush(self._alarms, (group.next_deadline, *key))
            if len(self._alarms) > ALARMS_MIN + 2 * len(self._groups):
                self._tidy_alarms()

    def _tidy_alarms(self) -> None:
        """Forget the alarms that count no more: each word of a source moves one on, and it would stay till then."""
        self._alarms = [(at, *key) for key, group in self._groups.items() if (at := group.next_deadline) is not None]
        heapq.heapify(self._alarms)

    def _have_rules(self, object_: str, rules: frozenset[str]) -> None:
        if rules:
            self._rules_of[object_] = self._same_rules.setdefault(rules, rules)
        else:
            del self._rules_of[object_]

    def _concerned(self, fact: Fact) -> Iterator[RuleObject]:
        match fact:
            case Observation():  # first: nearly all are, and to look for another class costs more than to find it
                yield from self._watching.heard(fact)
            case Pause() | Resume():
                yield from [key for key in self._groups if matches(fact.rule, key[0]) and not key[0].startswith("@")]
                return
            case Outcome() | AcquireReply() | Approve() | Reject() if fact.rule in self._routing.rules:
                rule = self._routing.rules[fact.rule]
                key = (fact.rule, kind_of(rule).owner(rule, fact.object))
                if key in self._groups:
                    yield key
            case Statement() if not self._routing.is_in_force(fact.rule, fact.cluster):
                return  # of a rule that is no more, or at rest: nothing of it is left behind
            case Command() if self._routing.everywhere(fact):
                yield from list(self._of_rule.get(fact.rule, ()))
        for rule, objects in self._routing.concerned(fact, self._there(fact)):
            for object_ in objects:
                key = (rule.name, object_)
                if kind_of(rule).leaves(rule, self._groups.get(key), fact):
                    self._drop(key)  # no longer ours: what it last did stays
                    continue
                if key not in self._groups:
                    if not self._may_open(rule, object_, fact):
                        continue
                    self._open(*key)
                yield key

    def _there(self, fact: Fact) -> Set[str]:
        object_ = object_of(fact)
        return self._rules_of.get(object_, _NONE) if object_ is not None else _NONE

    def _may_open(self, rule: Rule, object_: str, fact: Fact) -> bool:
        return self._mine(rule.name, scope_of(rule, object_)) and kind_of(rule).creates_group(rule, fact)

    def _open(self, rule: str, object_: str) -> None:
        self._keep(paused_by(new_group(self._routing.rules[rule], object_), self._pauses.of(rule)))

    def _drop(self, key: RuleObject) -> None:
        if self._groups.pop(key, None) is not None:
            self._of_rule[key[0]].discard(key)
            self._have_rules(key[1], self._rules_of[key[1]] - {key[0]})
            self._lacking.discard(key)
            self.dropped.add(key)
            self._changed.add(key)
            self._watching.forget(key)


def _key(group: Group) -> RuleObject:
    return group.rule, group.object
