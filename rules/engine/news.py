"""Whether a decision has changed more than the dates at which things were seen.

What a source says again moves dates on and nothing else. The stream of facts has it anyway, so that a group which has
only heard such words can be stored later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from rules.core.group import Group, Member

_DATED = frozenset({"members", "state", "position", "next_deadline", "later"})
_rest = attrgetter(*(field.name for field in fields(Group) if field.name not in _DATED))


def is_news(before: Group | None, after: Group, without_dates: Callable[[Any], object]) -> bool:
    """Whether what people are shown, or what is decided by, is another; `before` None: the group was not known.

    `without_dates`: gives what of the kind's state is more than when things were seen.
    """
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
