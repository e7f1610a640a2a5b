"""Check that a decision changed more than the dates of observations.

A repeated observation only moves dates on. The stream of facts has these too, so a group that received nothing else can
be stored later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from rules.core.group import Group
from rules.core.member import Member

_DATED = frozenset({"members", "state", "position", "next_deadline", "later"})
_rest = attrgetter(*(field.name for field in fields(Group) if field.name not in _DATED))


def is_news(before: Group | None, after: Group, without_dates: Callable[[Any], object]) -> bool:
    """True if the shown state, or anything a decision depends on, has changed; `before` None: the group is new.
    `without_dates`: gives the kind's state without the dates of observations."""
    if before is None or before.members.keys() != after.members.keys() or _rest(before) != _rest(after):
        return True
    if before.state is not after.state and without_dates(before.state) != without_dates(after.state):
        return True
    known = before.members
    for target, member in after.members.items():
        if member is not (was := known[target]) and _says(member) != _says(was):
            return True
    return False


def _says(member: Member) -> tuple[Any, ...]:
    signals = [(name, one.status, one.resolved, one.gone, one.doubted) for name, one in member.signals.items()]
    return member.status, member.since, member.settled, member.settled_at, member.unproven, member.window, signals
