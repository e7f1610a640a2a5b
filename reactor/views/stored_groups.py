"""The groups of a bus: what each rule remembers of each object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rules.catalog as _catalog  # noqa: F401 - it hands the kinds to the engine
from bus.errors import Malformed
from reactor.runtime.visible import visible
from reactor.views.stored_records import OnUnreadable
from rules.core.group import Group
from rules.engine.group_codec import load_group

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus


async def stored_groups(bus: JetStreamBus, unreadable: OnUnreadable) -> list[Group]:
    """Give all groups as they are stored, sorted; those that cannot be read are left out.

    `unreadable` is told of these. Raises Unavailable."""
    from bus.topology import GROUPS

    groups = []
    for entry in await bus.store(GROUPS).entries("*.group.>"):
        try:
            groups.append(load_group(entry.value))
        except Malformed as error:
            unreadable(visible(f"{entry.key}: {error}"))
    return sorted(groups, key=lambda group: (group.rule, group.object))
