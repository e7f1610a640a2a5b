"""`reactor members`: the reactors on a bus, the owner of each partition, and how many facts are unread.

Read from the bus: leases, positions and the stream of facts. The reactors are only asked whether they are alive.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_tables, as_yaml, say, warn
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.bus_settings import BusSettings
from reactor.views.membership import Row, members_of

PATIENCE = timedelta(seconds=3)


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
        seen = asyncio.run(_seen(settings, address(settings, bus)))
    say({"json": as_json, "yaml": as_yaml, "table": _shown}[output](seen))
    if any(not partition["alive"] for partition in seen["partitions"]):
        sys.exit(1)


async def _seen(settings: BusSettings, url: str | Sequence[str]) -> dict[str, list[Row]]:
    from reactor.process.session import connected

    async with connected(settings, url, "members", patience=PATIENCE) as bus:
        return await members_of(bus, warn)


def _by_owner(partitions: Sequence[Row]) -> list[Row]:
    """One row for each process that owns partitions, and one for those without a living owner."""
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
