"""The reactors on a bus, the owner of each partition, and how many facts are unread.

Read from the bus: leases, positions and the stream of facts. The reactors are only asked whether they are alive.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bus.json_text import parsed
from reactor.runtime.clock import Clock
from reactor.runtime.visible import visible
from reactor.views.stored_records import OnUnreadable

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus

ASK = timedelta(seconds=1)
LOOK = timedelta(seconds=0.5)
"""Time to wait for the first unread fact of a partition."""
OBSERVER = "observer"
"""Observers are fleets of their own on the same bus, one for each list of sources: their keys and subjects begin so."""
Row = dict[str, Any]


async def members_of(bus: JetStreamBus, unreadable: OnUnreadable) -> dict[str, list[Row]]:
    """Give `members`, `processes` and `partitions`, as `reactor members -o json` has them. Raises Unavailable."""
    from reactor.fleet.presence import present

    members, partitions = await owners(bus, unreadable)
    processes = [process.shown() for process in await present(bus)]
    for member in members:
        if member["role"] == "decider":
            member["partitions"] = sum(partition["owner"] == member["name"] for partition in partitions)
    return {"members": members, "processes": processes, "partitions": partitions}


async def owners(bus: JetStreamBus, unreadable: OnUnreadable) -> tuple[list[Row], list[Row]]:
    """Give the members of the fleet, and who owns each partition and how far behind it is. Raises Unavailable."""
    from bus.topology import LEASES
    from reactor.fleet.layout import partitions_of

    entries = {entry.key: entry.value for entry in await bus.store(LEASES).entries(">")}
    count = await partitions_of(bus) or 0
    read = ((key, _beat(key, value, unreadable)) for key, value in sorted(entries.items()))
    beats = [(key, beat) for key, beat in read if beat is not None]
    members = await asyncio.gather(*(_member(bus, key, beat, Clock().now()) for key, beat in beats))
    living = {member["name"] for member in members if member["alive"] and member["role"] == "decider"}
    owned = {number: entries.get(f"owner.{number}", b"").decode("utf-8", "replace") for number in range(count)}
    partitions = await asyncio.gather(
        *(_partition(bus, one, owner, living, unreadable) for one, owner in owned.items())
    )
    return list(members), list(partitions)


def _beat(key: str, value: bytes, unreadable: OnUnreadable) -> dict[str, str] | None:
    """Give a member's heartbeat; None where it is another entry, or cannot be read."""
    if "member." not in key:
        return None
    try:
        beat = parsed(value)
        datetime.fromisoformat(beat["at"])
        return {"name": str(beat["name"]), "at": beat["at"]}
    except (ValueError, TypeError, KeyError) as error:
        unreadable(visible(f"{key} cannot be read: {error!r}"))
        return None


async def _member(bus: JetStreamBus, key: str, beat: dict[str, str], now: datetime) -> Row:
    from bus import subjects

    kind, name = key.partition("member.")[0], beat["name"]
    age = (now - datetime.fromisoformat(beat["at"])).total_seconds()
    alive = await bus.is_present(subjects.alive(kind + name), ASK)
    role = OBSERVER if kind.startswith(OBSERVER) else "decider"
    return {"name": name, "role": role, "alive": alive is True, "heartbeat_seconds": round(age, 1)}


async def _partition(bus: JetStreamBus, number: int, owner: str, living: set[str], unreadable: OnUnreadable) -> Row:
    from bus import subjects
    from bus.errors import KeyNotFound, Malformed, StreamRecreated
    from bus.topology import GROUPS
    from reactor.audit.position import Position

    position = 0
    try:
        position = Position.read((await bus.store(GROUPS).get(subjects.key(str(number), "position"))).value).sequence
    except KeyNotFound:
        pass  # nothing was ever observed here
    except Malformed as error:
        unreadable(visible(f"partition {number}: {error}"))
    try:
        unread = await _unread(bus, number, position)
    except StreamRecreated:  # its owner begins again as well
        position, unread = 0, await _unread(bus, number, 0)
    return {"partition": number, "owner": owner, "alive": owner in living, "position": position, "unread": unread}


async def _unread(bus: JetStreamBus, number: int, position: int) -> int:
    from bus import subjects
    from bus.topology import FACTS

    async with bus.read(FACTS, subjects.facts(number), after=position) as reading:
        first = [] if reading.current else await reading.next(LOOK)
    return len(first) + first[-1].pending if first else 0
