"""Whether an action that has waited is still wanted, when its turn comes.

A paused rule decides nothing more, but what it decided before may wait behind a slow API for minutes. So what was not
begun at once is looked up where its decider keeps it: a global stop is honoured within two seconds whatever the queue
holds, and so is every other change of mind. A step back that a person asks for in a pause is wanted, and is done.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bus import subjects
from bus.errors import Malformed, NotFound
from bus.messages import Action, Notify
from bus.port import Store
from rules.engine.registry import kind_of
from rules.engine.routing import Routing, scope_of
from rules.group import Group, load

FRESH = timedelta(seconds=1)
"""What was decided no longer ago is begun without a look: half of the two seconds, and most actions."""


class Wanted:
    """What the deciders have stored of their groups."""

    def __init__(self, groups: Store, routing: Routing, partitions: int) -> None:
        self._groups = groups
        self._routing = routing
        self._partitions = partitions

    async def called_off(self, action: Action, now: datetime) -> str | None:
        """Say why the action is not to be begun any more; None: it is. Raises Unavailable."""
        rule = self._routing.rules.get(action.rule)
        if rule is None or isinstance(action, Notify) or now - action.decided_at < FRESH:
            return None
        object_ = kind_of(rule).owner(rule, action.object)
        partition = subjects.partition_of(rule.name, scope_of(rule, object_), self._partitions)
        try:
            group = load((await self._groups.get(subjects.group(partition, rule.name, object_))).value)
        except (NotFound, Malformed):
            return None  # the bus was wiped, or a newer reactor decides: the action itself is all there is to go by
        return _said(group, action)


def _said(group: Group, action: Action) -> str | None:
    owed = next((owed for owed in group.owed if owed.action.id == action.id), None)
    if owed is not None and owed.wanted:
        return None
    if group.paused is not None:
        return group.paused.words
    # What the group has asked for and owes no more, it has changed its mind about. A group that has not come so far is
    # an older look at it, or another one of the same name: then the action itself is all there is to go by.
    asked_for = owed is not None or group.generation >= action.generation
    return "nobody wants it any more" if asked_for else None
