"""Pauses by rule: kept for groups that appear later, and stored like a group so that they survive a restart."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bus.messages import Pause, Resume
from rules.core.group import Group, NoState, Paused
from rules.core.values import replace
from rules.rulefile.targets import matches

PAUSES = "@pause"
"""In place of a group's rule; the object is the pattern of rule names."""


class Pauses:
    """The pauses that apply now."""

    def __init__(self, stored: Iterable[Group]) -> None:
        self._standing = {
            group.object: replace(group.paused, pattern=group.object) for group in stored if group.paused is not None
        }
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
        paused = lasting(self._standing.get(fact.rule), fact)
        if paused is self._standing.get(fact.rule):
            return []
        self._standing[fact.rule] = paused
        return [self.group(fact.rule)]

    def end(self, now: datetime) -> set[tuple[str, str]]:
        """Forget those whose time is over, and give their keys."""
        over = [pattern for pattern, paused in self._standing.items() if paused.is_over(now)]
        for pattern in over:
            del self._standing[pattern]
        return {(PAUSES, pattern) for pattern in over}

    def group(self, pattern: str) -> Group:
        """Give the pause in the form in which it is stored."""
        return Group(PAUSES, pattern, NoState(), paused=self._standing[pattern])

    def of(self, rule: str) -> list[Paused]:
        """Give the pauses that hold for this rule. Guards themselves are never paused.

        They may be over already: `decide` ends them.
        """
        if rule.startswith("@"):
            return []
        return [paused for pattern, paused in self._standing.items() if matches(pattern, rule)]

    def named(self, group: Group) -> Group:
        """Give a stored group with the names that its pauses were said of: 0.1.0 did not store them in groups."""
        mine = self.of(group.rule)
        return paused_by(group, mine) if group.paused is not None and not group.paused.pattern and mine else group


def lasting(standing: Paused | None, fact: Pause) -> Paused:
    """Give the pause that holds after this command: of two the one that ends later, so that neither is cut short.

    Of two with the same end it is the one that was there: who was first is told.
    """
    until = fact.observed_at + timedelta(seconds=fact.for_seconds) if fact.for_seconds is not None else None
    paused = Paused(fact.who, fact.reason, fact.observed_at, until, fact.rule)
    return paused if standing is None or paused.outlasts(standing) else standing


def commanded(group: Group, fact: Pause | Resume) -> Group:
    """Give the group after a person's command, whatever order they come in.

    A resume ends the pauses that were said before it of names that it matches, and no others: that one rule is resumed
    ends no global stop, also one that comes late because of another person's clock.
    """
    standing = _standing(group)
    if isinstance(fact, Resume):
        rest = [one for one in standing if one.since > fact.observed_at or not _ends(fact.rule, one)]
        newest = group.resumed is None or group.resumed[1] <= fact.observed_at
        return paused_by(replace(group, resumed=(fact.rule, fact.observed_at)) if newest else group, rest)
    if group.resumed is not None and fact.observed_at <= group.resumed[1] and matches(group.resumed[0], fact.rule):
        return group
    of_these = next((one for one in standing if one.pattern == fact.rule), None)
    return paused_by(group, [*(one for one in standing if one is not of_these), lasting(of_these, fact)])


def paused_by(group: Group, standing: Iterable[Paused]) -> Group:
    """Give the group with these pauses: the one that ends last holds, of several with the same end the oldest."""
    longest: Paused | None = None
    for paused in (standing := sorted(standing, key=_since)):
        longest = paused if longest is None or paused.outlasts(longest) else longest
    return replace(group, paused=longest, also_paused=tuple(one for one in standing if one is not longest))


def ended(group: Group, now: datetime) -> Group:
    """Give the group without pauses whose time is over: its clocks run on from the end of the last."""
    if group.paused is None:
        return group
    standing = _standing(group)
    going_on = [one for one in standing if not one.is_over(now)]
    if len(going_on) == len(standing):
        return group
    over = group.paused.until if not going_on else group.pause_ended_at
    return paused_by(replace(group, pause_ended_at=over), going_on)


def _ends(pattern: str, paused: Paused) -> bool:
    return not paused.pattern or matches(pattern, paused.pattern)


def _standing(group: Group) -> tuple[Paused, ...]:
    return () if group.paused is None else (group.paused, *group.also_paused)


def _since(paused: Paused) -> datetime:
    return paused.since
