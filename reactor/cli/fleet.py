"""`reactor fleet`: who is there, who decides for which partition, and what is still unread.

Read from the bus: leases, positions and the stream of facts. Nothing is asked of the reactors but whether they live.
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

from reactor import settings as settings_
from reactor.cli.outcome import told
from reactor.clock import Clock
from reactor.settings import BusSettings

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus

PATIENCE = timedelta(seconds=3)
ASK = timedelta(seconds=1)
LOOK = timedelta(seconds=0.5)
"""How long is waited for the first unread fact of a partition."""
Row = dict[str, Any]
OBSERVER = "observer"
"""Observers are a fleet of their own on the same bus: their keys and subjects begin so."""


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@click.option("--bus", metavar="URL", help="NATS server; by default the one that a local reactor has embedded.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def fleet(config: Path | None, bus: str | None, output: str) -> None:
    """Show the reactors on this bus, their partitions, and how far behind each is.

    Exit code: 0; 1 where a partition has no living owner; 3 where the bus cannot be reached.
    """
    with told():
        from reactor.connecting import address

        settings = settings_.load(config).bus
        seen = asyncio.run(_look(settings, address(settings, bus)))
    click.echo(json.dumps(seen, indent=2) if output == "json" else _tables(seen))
    if any(not partition["alive"] for partition in seen["partitions"]):
        sys.exit(1)


async def _look(settings: BusSettings, url: str | Sequence[str]) -> dict[str, list[Row]]:
    from bus import subjects
    from bus.topology import LEASES
    from reactor.connecting import connected

    async with connected(settings, url, "fleet", patience=PATIENCE) as bus:
        entries = {entry.key: entry.value for entry in await bus.store(LEASES).entries(">")}
        layout = json.loads(entries.get(subjects.key("layout"), b"{}"))
        beats = [(key, json.loads(value)) for key, value in sorted(entries.items()) if "member." in key]
        members = await asyncio.gather(*(_member(bus, key, beat, Clock().now()) for key, beat in beats))
        living = {member["name"] for member in members if member["alive"] and member["role"] == "decider"}
        owners = {number: entries.get(f"owner.{number}", b"").decode() for number in range(layout.get("partitions", 0))}
        partitions = await asyncio.gather(*(_partition(bus, one, owner, living) for one, owner in owners.items()))
    for member in members:
        if member["role"] == "decider":
            member["partitions"] = sum(partition["owner"] == member["name"] for partition in partitions)
    return {"members": members, "partitions": partitions}


async def _member(bus: JetStreamBus, key: str, beat: dict[str, str], now: datetime) -> Row:
    from bus import subjects

    prefix = OBSERVER if key.startswith(OBSERVER) else ""
    name = beat["name"]
    age = (now - datetime.fromisoformat(beat["at"])).total_seconds()
    alive = await bus.ask(subjects.alive(prefix + name), ASK)
    return {"name": name, "role": prefix or "decider", "alive": alive is True, "heartbeat_seconds": round(age, 1)}


async def _partition(bus: JetStreamBus, number: int, owner: str, living: set[str]) -> Row:
    from bus import subjects
    from bus.errors import NotFound
    from bus.topology import FACTS, GROUPS

    position = 0
    try:
        entry = await bus.store(GROUPS).get(subjects.key(str(number), "position"))
    except NotFound:
        pass  # nothing was ever heard of here
    else:
        position = int(json.loads(entry.value)["sequence"])
    unread = 0
    async with bus.read(FACTS, subjects.facts(number), after=position) as reading:
        if not reading.current and (first := await reading.next(LOOK)):
            unread = len(first) + first[-1].pending
    return {"partition": number, "owner": owner, "alive": owner in living, "position": position, "unread": unread}


def _tables(seen: dict[str, list[Row]]) -> str:
    parts = [_table(rows) for rows in seen.values() if rows]
    return "\n\n".join(parts) if parts else "no reactor has ever been here"


def _table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [[name.upper() for name in names], *([_shown(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    return "\n".join("  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) if value != "" else "-"
