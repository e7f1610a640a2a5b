"""Targets that each group subscribes to, for kinds whose groups learn their targets from inventory."""

from __future__ import annotations

from collections import defaultdict

from bus.messages import Fact, Observation
from rules.core.group import Group
from rules.engine.known_kinds import kind_of
from rules.engine.routing import Routing

RuleObject = tuple[str, str]
"""Rule and object."""
HEARD_MAX = 100_000
"""Largest number of targets whose last observations are kept for groups that may still appear."""


class Subscriptions:
    """The targets of all groups, and the last observation of each target."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._watchers: dict[str, set[RuleObject]] = defaultdict(set)
        self._targets: dict[RuleObject, frozenset[str]] = {}
        self._heard: dict[str, dict[str, Observation]] = {}
        self._may_gain = any(kind_of(rule).subscribing for rule in routing.rules.values())
        """True if a group may subscribe to more targets; otherwise earlier observations (1.5 kB a target)
        are not kept."""

    def heard(self, fact: Observation) -> list[RuleObject]:
        """Keep what was said, and give the groups that listen to it."""
        if self._may_gain and (fact.target in self._heard or len(self._heard) < HEARD_MAX):
            said = self._heard.setdefault(fact.target, {})
            last = said.get(fact.signal)
            if last is None or fact.observed_at >= last.observed_at:  # else it comes late, and is no news
                said[fact.signal] = fact
        return sorted(self._watchers.get(fact.target, ()))

    def keep(self, group: Group, before: Group | None) -> None:
        """Follow what the group subscribes to."""
        rule = self._routing.rules[group.rule]
        targets = kind_of(rule).subscribed(rule, before, group)
        if targets is None:
            return
        key = (group.rule, group.object)
        for target in self._targets.get(key, frozenset()) - targets:
            self._watchers[target].discard(key)
        for target in targets:
            self._watchers[target].add(key)
        self._targets[key] = targets

    def forget(self, key: RuleObject) -> None:
        """The group is no more."""
        for target in self._targets.pop(key, ()):
            self._watchers[target].discard(key)

    def earlier(self, key: RuleObject, fact: Fact) -> list[Observation]:
        """Earlier observations of the targets that this fact subscribes the group to."""
        return [one for target in sorted(self.gained(key, fact)) for one in self._heard.get(target, {}).values()]

    def gained(self, key: RuleObject, fact: Fact) -> frozenset[str]:
        """The targets that this group has to listen to from now on, and did not before."""
        rule = self._routing.rules[key[0]]
        return kind_of(rule).subscribes(rule, key[1], fact) - self._targets.get(key, frozenset())
