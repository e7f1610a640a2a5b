"""`reactor zone`: zones, their isolation plans and drills. The commands that change something are in zone_isolation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from reactor.cli.shared.asking import look
from reactor.cli.shared.known_rules import told_rules
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_table, printed, say
from reactor.cli.shared.zone_isolation import INCOMPLETE, abort, failback, isolate, retry, rule_called
from reactor.runtime.clock import Clock
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from reactor.views.zone_words import (
    as_data,
    drill_row,
    group_of,
    in_words,
    left_behind,
    planned,
    rows_of,
    stored_rows,
)
from rules.kinds.zone.model import ZoneIsolation

ON = (
    click.option(
        "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
        help="Settings file.",
    ),
    bus_option(),
    click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'."),
    output_option(),
)  # fmt: skip


def _looking(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(ON):
        command = option(command)
    return command


@click.group()
def zone() -> None:
    """Show zones, isolate a zone, and bring it back.

    \b
    reactor zone plan prod-zones eu-central-1a
    reactor zone isolate prod-zones eu-central-1a --comment "INC-7: disks in 1a"
    reactor zone failback prod-zones --comment "INC-7 is over"
    """


@zone.command("list")
@_looking
def list_(config: Path | None, bus: str | None, rules: tuple[str, ...], output: str) -> None:
    """List zones, their health and their isolation.

    The list has the zones of all ZoneIsolation rules. It includes isolated zones whose rule is in no file any more.
    `failback`, `abort` and `retry` work for them.

    Exit code: 0; 1 if an isolation failed; 3 if the bus cannot be reached.
    """
    with told():
        settings = _settings(config, rules)
        groups = look(settings, bus)
        rules_, whole = told_rules(settings, f"{INCOMPLETE}; zones of missing rules are shown as they are stored")
        known = [rule for rule in rules_.rules if isinstance(rule, ZoneIsolation)]
        rows = [row for rule in known for row in rows_of(rule, group_of(groups, rule))]
        rows += left_behind(groups, known) if whole else stored_rows(groups, known)
    say(printed(rows, output, as_table) if rows or output != "table" else "no ZoneIsolation rule")
    if any(row["status"] == "Failed" for row in rows):
        sys.exit(1)


@zone.command()
@click.argument("rule")
@click.argument("zone")
@_looking
def plan(rule: str, zone: str, config: Path | None, bus: str | None, rules: tuple[str, ...], output: str) -> None:
    """Show what RULE would do to isolate ZONE.

    The plan has the steps of the isolation and of the way back, and the result of each guard now. The command changes
    nothing.

    Exit code: 0 if the isolation would start; 1 if a guard refuses it; 3 if the bus cannot be reached.
    """
    with told():
        settings = _settings(config, rules)
        found = rule_called(settings, rule, zone)
        shown = planned(found, group_of(look(settings, bus), found), zone, Clock().now())
    say(in_words(found, shown) if output == "table" else printed(as_data(shown), output))
    sys.exit(0 if shown.admitted else 1)


@zone.command()
@click.argument("rule", required=False)
@_looking
def drill(rule: str | None, config: Path | None, bus: str | None, rules: tuple[str, ...], output: str) -> None:
    """Show the scheduled drills of RULE, or of all rules.

    Drills are the `practice` of ZoneIsolation rules. For each rule: the zone and time of the next drill, the drill that
    is running, the result of the last one, and by what evidence the zone comes back. The command starts no drill.
    `reactor zone plan` shows what an isolation would do.

    Exit code: 0; 1 if there is no such rule; 3 if the bus cannot be reached.
    """
    with told():
        settings = _settings(config, rules)
        if rule is not None:
            wanted = [rule_called(settings, rule)]
        else:
            loaded, _ = told_rules(settings, f"{INCOMPLETE}; their drills are not shown")
            wanted = [one for one in loaded.rules if isinstance(one, ZoneIsolation)]
        groups = look(settings, bus)
    rows = [drill_row(one, group_of(groups, one), Clock().now()) for one in wanted if one.practice is not None]
    say(printed(rows, output, as_table) if rows or output != "table" else "no rule has drills (`practice`)")


def _settings(config: Path | None, rules: tuple[str, ...]) -> Settings:
    return settings_.load(config, **({"rule_files": rules} if rules else {}))


for _command in (isolate, failback, abort, retry):
    zone.add_command(_command)
