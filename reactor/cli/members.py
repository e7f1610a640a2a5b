"""`reactor members`: the reactors on a bus, the owner of each partition, and how many facts are unread.

Read from the bus: leases, positions and the stream of facts. The reactors are only asked whether they are alive.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_tables, as_yaml, say
from reactor.runtime.clock import Clock
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.model import BusSettings

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus

PATIENCE = timedelta(seconds=3)
ASK = timedelta(seconds=1)
LOOK = timedelta(seconds=0.5)
"""How long is waited for the first unread fact of a partition."""
OBSERVER = "observer"
"""Observers are fleets of their own on the same bus, one for each list of sources: their keys and subjects begin so."""
Row = dict[str, Any]


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@output_option()
def members(config: Path | None, bus: str | None, output: str) -> None:
    """List the reactors on this bus: the rules that each uses, its partitions, and how many facts are unread.

    Exit code: 0; 1 if a partition has no living owner; 3 if the bus cannot be reached.
    """
    with told():
        from reactor.process.session import address

        settings = settings_.load(config).bus
        seen = asyncio.run(_look(settings, address(settings, bus)))
    say({"json": as_json, "yaml": as_yaml, "table": _shown}[output](seen))
    if any(not partition["alive"] for partition in seen["partitions"]):
        sys.exit(1)


async def _look(settings: BusSettings, url: str | Sequence[str]) -> dict[str, list[Row]]:
    from reactor.fleet.presence import present
    from reactor.process.session import connected

    async with connected(settings, url, "members", patience=PATIENCE) as bus:
        members, partitions = await owners(bus)
        processes = [process.shown() for process in await present(bus)]
    for member in members:
        if member["role"] == "decider":
            member["partitions"] = sum(partition["owner"] == member["name"] for partition in partitions)
    return {"members": members, "processes": processes, "partitions": partitions}


async def owners(bus: JetStreamBus) -> tuple[list[Row], list[Row]]:
    """Give the members of the fleet, and who owns each partition and how far behind it is. Raises Unavailable."""
    from bus.topology import LEASES
    from reactor.process.session import partitions_of

    entries = {entry.key: entry.value for entry in await bus.store(LEASES).entries(">")}
    count = await partitions_of(bus) or 0
    beats = [(key, beat) for key, value in sorted(entries.items()) if (beat := _beat(key, value)) is not None]
    members = await asyncio.gather(*(_member(bus, key, beat, Clock().now()) for key, beat in beats))
    living = {member["name"] for member in members if member["alive"] and member["role"] == "decider"}
    owned = {number: entries.get(f"owner.{number}", b"").decode("utf-8", "replace") for number in range(count)}
    partitions = await asyncio.gather(*(_partition(bus, one, owner, living) for one, owner in owned.items()))
    return list(members), list(partitions)


def _beat(key: str, value: bytes) -> dict[str, str] | None:
    """Give a member's heartbeat; None where it is another entry, or cannot be read."""
    if "member." not in key:
        return None
    try:
        beat = json.loads(value)
        datetime.fromisoformat(beat["at"])
        return {"name": str(beat["name"]), "at": beat["at"]}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        say(visible(f"{key} cannot be read: {error!r}"), err=True)
        return None


async def _member(bus: JetStreamBus, key: str, beat: dict[str, str], now: datetime) -> Row:
    from bus import subjects

    kind, name = key.partition("member.")[0], beat["name"]
    age = (now - datetime.fromisoformat(beat["at"])).total_seconds()
    alive = await bus.ask(subjects.alive(kind + name), ASK)
    role = OBSERVER if kind.startswith(OBSERVER) else "decider"
    return {"name": name, "role": role, "alive": alive is True, "heartbeat_seconds": round(age, 1)}


async def _partition(bus: JetStreamBus, number: int, owner: str, living: set[str]) -> Row:
    from bus import subjects
    from bus.errors import Malformed, NotFound, StreamRecreated
    from bus.topology import GROUPS
    from reactor.audit.position import Position

    position = 0
    try:
        position = Position.read((await bus.store(GROUPS).get(subjects.key(str(number), "position"))).value).sequence
    except NotFound:
        pass  # nothing was ever heard of here
    except Malformed as error:
        say(visible(f"partition {number}: {error}"), err=True)
    try:
        unread = await _unread(bus, number, position)
    except StreamRecreated:  # its owner begins anew as well
        position, unread = 0, await _unread(bus, number, 0)
    return {"partition": number, "owner": owner, "alive": owner in living, "position": position, "unread": unread}


async def _unread(bus: JetStreamBus, number: int, position: int) -> int:
    from bus import subjects
    from bus.topology import FACTS

    async with bus.read(FACTS, subjects.facts(number), after=position) as reading:
        first = [] if reading.current else await reading.next(LOOK)
    return len(first) + first[-1].pending if first else 0


def _by_owner(partitions: Sequence[Row]) -> list[Row]:
    """One row for each process that owns partitions, and one for those that nobody alive owns."""
    owners: dict[tuple[bool, str], list[Row]] = {}
    for one in partitions:
        owners.setdefault((one["alive"], one["owner"]), []).append(one)
    return [
        {"owner": owner, "alive": alive, "count": len(mine), "partitions": _ranges([one["partition"] for one in mine]),
         "unread": sum(one["unread"] for one in mine)}
        for (alive, owner), mine in sorted(owners.items())
    ]  # fmt: skip


def _ranges(numbers: Sequence[int]) -> str:
    """`0-3 7`: numbers in order, those that follow each other together."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def _shown(seen: dict[str, list[Row]]) -> str:
    processes = [process | {"problems": len(process["problems"])} for process in seen["processes"]]
    tables = as_tables({**seen, "processes": processes, "partitions": _by_owner(seen["partitions"])})
    by_rules: dict[str, list[str]] = {}
    for process in processes:
        by_rules.setdefault(process["rules"], []).append(process["name"])
    if len(by_rules) > 1:
        differ = "; ".join(f"{rules} on {', '.join(names)}" for rules, names in sorted(by_rules.items()))
        tables += f"\n\nrules differ: {visible(differ)}"
    return tables or "no reactor has used this bus yet"
