"""Validity of stored groups after the rule files have changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.core.group import Group
from rules.core.values import replace
from rules.engine.known_kinds import kind_of
from rules.engine.routing import Routing
from rules.rulefile.model import Rule

AT_ONCE = datetime.min.replace(tzinfo=UTC)


def covers(rule: Rule, object_: str) -> bool:
    """True if the rule, as it is written now, still matches the object."""
    return kind_of(rule).selects(rule, object_)


def mended(routing: Routing, shared: Group, others: Iterable[Group]) -> list[Group]:
    """Give the groups that change because a rule that spoke to them was removed, put to rest, or means others now.

    The shared group without what it said, and the groups that used that, to be decided again at once.
    """
    rule = routing.rules[shared.rule]
    without = kind_of(rule).forget(rule, shared, routing.is_in_force)
    if without is shared:
        return []
    dependents = kind_of(rule).dependents(rule, shared, without, others)
    return [replace(group, next_deadline=AT_ONCE) for group in (without, *dependents)]


def as_it_counts(routing: Routing, group: Group) -> Group:
    """Give a stored group without what is no word about it by the rules as they are now."""
    rule = routing.rules[group.rule]
    return kind_of(rule).as_it_counts(rule, group, lambda target, signal: routing.is_taken(rule, target, signal))
