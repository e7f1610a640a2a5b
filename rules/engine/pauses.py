"""Who has paused which rules: kept for groups that appear later, stored like a group so that a restart forgets none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from bus.messages import Pause, Resume
from rules.group import Group, Paused
from rules.language.targets import matches

PAUSES = "@pause"
"""Stands where a group has its rule; the object is the pattern of rule names."""


class Pauses:
    """The pauses that stand."""

    def __init__(self, stored: Iterable[Group]) -> None:
        self._standing = {group.object: group.paused for group in stored if group.paused is not None}
        self._resumed: dict[str, datetime] = {}
        self.dropped: set[tuple[str, str]] = set()
        """The keys of those that the last resume has ended."""

    def take(self, fact: Pause | Resume) -> list[Group]:
        """Fold a command in, and give what is to be stored. The newest word counts, in whatever order they come."""
        self.dropped = set()
        if isinstance(fact, Resume):
            for pattern, paused in list(self._standing.items()):
                if matches(fact.rule, pattern) and paused.since <= fact.observed_at:
                    del self._standing[pattern]
                    self.dropped.add((PAUSES, pattern))
            self._resumed[fact.rule] = fact.observed_at
            return []
        if any(matches(rule, fact.rule) and at >= fact.observed_at for rule, at in self._resumed.items()):
            return []
        if fact.rule in self._standing:
            return []  # who was first to pause is told; a second word changes nothing
        self._standing[fact.rule] = Paused(fact.who, fact.reason, fact.observed_at)
        return [self.group(fact.rule)]

    def group(self, pattern: str) -> Group:
        """Give the pause in the form in which it is stored."""
        return Group(PAUSES, pattern, paused=self._standing[pattern])

    def of(self, rule: str) -> Paused | None:
        """Give the oldest pause that holds for this rule. Guards themselves are never paused."""
        if rule.startswith("@"):
            return None
        mine = [paused for pattern, paused in self._standing.items() if matches(pattern, rule)]
        return min(mine, key=lambda paused: paused.since, default=None)
