"""Many groups, kept by one reader: facts in, decisions out. Used live for a partition, and in every rehearsal.

It finds the groups that a fact concerns, opens groups as their things appear, and knows when to look again.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bus.messages import Fact, Observation, Outcome, Pause, Resume, Route
from rules.engine.decide import Decision, decide
from rules.engine.observe import PRIMARY_ANNOTATION
from rules.engine.owe import route_ref
from rules.engine.routing import Routing, explicit_targets, named_ref, scope_of
from rules.group import Group
from rules.kinds.traffic import service_target
from rules.language.loader import LoadedRule
from rules.language.model import Notification, OnAllDown, TrafficFailover
from rules.language.selectors import matches as selected
from rules.language.targets import matches

Key = tuple[str, str]
"""Rule and object."""
HEARD_MAX = 100_000
"""How many targets' last observations are kept for groups that may still appear."""


class Book:
    """The groups of one reader."""

    def __init__(
        self, routing: Routing, groups: Iterable[Group] = (), *, mine: Callable[[str, str], bool] = lambda *_: True
    ) -> None:
        """`mine(rule, scope)`: whether the groups of this address belong into this book."""
        self._routing = routing
        self._mine = mine
        self._groups: dict[Key, Group] = {}
        self._watching: dict[str, set[Key]] = defaultdict(set)
        self._targets: dict[Key, frozenset[str]] = {}
        self._heard: dict[str, dict[str, Observation]] = {}
        self._paused: dict[str, Pause] = {}
        self._alarms: list[tuple[datetime, Key]] = []
        self.dropped: set[Key] = set()
        """Groups that are no more; whoever stores groups forgets them, and clears this."""
        for group in groups:
            rule = routing.rules.get(group.rule)
            if rule is not None and mine(group.rule, scope_of(rule, group.object)) and _belongs(rule, group.object):
                self._keep(group)
        for rule in routing.rules.values():
            ref = named_ref(rule) if isinstance(rule, TrafficFailover) else None
            if ref is not None and mine(rule.name, ref.object) and (rule.name, ref.object) not in self._groups:
                self._keep(Group(rule.name, ref.object))

    @property
    def groups(self) -> Mapping[Key, Group]:
        """All groups, by rule and object."""
        return self._groups

    def next_alarm(self) -> datetime | None:
        """When `ring` has something to do."""
        while self._alarms:
            at, key = self._alarms[0]
            group = self._groups.get(key)
            if group is not None and group.wake_at == at:
                return at
            heapq.heappop(self._alarms)
        return None

    def take(self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = ()) -> list[Decision]:
        """Fold facts in that were read together, and decide once for every group that they concern.

        `positions`: each fact's place in its stream; a group that was stored at that place or a later one has had it.
        """
        touched: dict[Key, list[Fact]] = defaultdict(list)
        placed = list(zip(facts, positions or [0] * len(facts), strict=True))
        # Routes last: a group that opens with its route then finds all that was heard in the same instant.
        for fact, position in sorted(placed, key=lambda one: isinstance(one[0], Route)):
            for key in self._concerned(fact):
                if not position or self._groups[key].position < position:
                    touched[key] += self._with_earlier(key, fact)
        last = max(positions, default=0)
        return [self._decide(key, touched[key], now, last) for key in sorted(touched)]

    def ring(self, now: datetime) -> list[Decision]:
        """Decide for every group whose moment has come."""
        due: set[Key] = set()
        while (at := self.next_alarm()) is not None and at <= now:
            due.add(heapq.heappop(self._alarms)[1])
        return [self._decide(key, (), now, 0) for key in sorted(due)]

    def _decide(self, key: Key, facts: Sequence[Fact], now: datetime, position: int) -> Decision:
        group = self._groups[key]
        decision = decide(self._routing.rules[key[0]], group, facts, now)
        if position > group.position:
            decision = replace(decision, group=replace(decision.group, position=position))
        self._keep(decision.group)
        return decision

    def _keep(self, group: Group) -> None:
        key = (group.rule, group.object)
        before = self._groups.get(key)
        if before is None or before.route is not group.route:
            targets = self._relevant(group)
            for target in self._targets.get(key, frozenset()) - targets:
                self._watching[target].discard(key)
            for target in targets:
                self._watching[target].add(key)
            self._targets[key] = targets
        self._groups[key] = group
        if group.wake_at is not None and (before is None or before.wake_at != group.wake_at):
            heapq.heappush(self._alarms, (group.wake_at, key))

    def _relevant(self, group: Group) -> frozenset[str]:
        """The targets whose health this group has to know."""
        route = group.route
        if route is None:
            return self._targets_of(group.rule, group.object, (), None)
        return self._targets_of(group.rule, group.object, [service for service, _ in route.backends], route.primary)

    def _targets_of(self, name: str, object_: str, services: Iterable[str], primary: str | None) -> frozenset[str]:
        rule = self._routing.rules[name]
        if isinstance(rule, Notification):
            return frozenset({object_})
        ref = route_ref(rule, object_)
        targets = explicit_targets(rule, ref)
        if targets is None:
            targets = frozenset(service_target(ref, service) for service in services)
        if primary and rule.on_all_down is OnAllDown.ZERO:
            targets |= {service_target(ref, primary)}
        return targets

    def _concerned(self, fact: Fact) -> Iterator[Key]:
        match fact:
            case Observation():
                yield from self._of_observation(fact)
            case Route():
                yield from self._of_route(fact)
            case Outcome():
                if (fact.rule, fact.object) in self._groups:
                    yield fact.rule, fact.object
            case Pause() | Resume():
                yield from [key for key in self._groups if matches(fact.rule, key[0])]
                if isinstance(fact, Pause):
                    self._paused[fact.rule] = fact
                else:
                    self._paused = {rule: pause for rule, pause in self._paused.items() if not matches(fact.rule, rule)}

    def _of_observation(self, fact: Observation) -> Iterator[Key]:
        if fact.target in self._heard or len(self._heard) < HEARD_MAX:
            self._heard.setdefault(fact.target, {})[fact.signal] = fact
        yield from sorted(self._watching.get(fact.target, ()))
        for name, scope in self._routing.addresses(fact):
            rule = self._routing.rules[name]
            if isinstance(rule, Notification) and (name, scope) not in self._groups and self._mine(name, scope):
                self._open(name, fact.target)
                yield name, fact.target

    def _of_route(self, fact: Route) -> Iterator[Key]:
        for name, scope in self._routing.addresses(fact):
            rule = self._routing.rules[name]
            if not self._mine(name, scope) or not isinstance(rule, TrafficFailover):
                continue
            key = (name, fact.object)
            if rule.route.selector is not None:
                if not fact.exists or not selected(rule.route.selector, fact.labels):
                    self._drop(key)  # no longer ours: its last weights stay
                    continue
                if key not in self._groups:
                    self._open(*key)
            yield key

    def _open(self, rule: str, object_: str) -> None:
        self._keep(Group(rule, object_))

    def _drop(self, key: Key) -> None:
        if self._groups.pop(key, None) is not None:
            self.dropped.add(key)
            for target in self._targets.pop(key):
                self._watching[target].discard(key)

    def _with_earlier(self, key: Key, fact: Fact) -> list[Fact]:
        """A group that appears, or gets a backend (again), is told what was heard while it did not listen."""
        earlier: list[Fact] = []
        group = self._groups[key]
        if group.generation == 0 and not group.members and group.route is None:
            earlier += [pause for rule, pause in self._paused.items() if matches(rule, key[0])]
        if isinstance(fact, Route):
            services = [backend.service for backend in fact.backends]
            primary = fact.annotations.get(PRIMARY_ANNOTATION)
            targets = self._targets_of(group.rule, group.object, services, primary)
            for target in sorted(targets - self._targets[key]):
                earlier += self._heard.get(target, {}).values()
        return [*earlier, fact]


def _belongs(rule: LoadedRule, object_: str) -> bool:
    """Whether the rule, as it is written now, still speaks of this thing: rule files change, stored groups stay."""
    if isinstance(rule, Notification):
        return matches(rule.match, object_)
    ref = named_ref(rule)
    if ref is not None:
        return object_ == ref.object
    cluster, namespace, kind, _ = object_.split("#")[0].split("/")
    route = rule.route
    return (cluster, kind) == (route.cluster, route.kind) and route.namespace in (None, namespace)
