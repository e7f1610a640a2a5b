"""`reactor zones`, `isolate`, `failback`, `abort`, `retry`, `drill`: zones in people's hands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor import settings as settings_
from reactor.cli.asking import Asker, asking, finish, look, send
from reactor.cli.options import bus_option
from reactor.cli.outcome import told
from reactor.cli.printing import as_json, as_table, as_yaml
from reactor.cli.zone_words import as_data, effect, group_of, in_words, planned, rows_of
from reactor.errors import SettingsError
from reactor.rulefiles import load_alone
from reactor.settings import Settings
from rules.kinds.zone_plan import undo_order
from rules.language.zone import ZoneIsolation
from rules.states.zone import Isolation

ON = (
    click.option(
        "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
        help="Settings file.",
    ),
    bus_option(),
    click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'."),
    click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True),
)  # fmt: skip


def _looking(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(ON):
        command = option(command)
    return command


@click.command()
@_looking
def zones(config: Path | None, bus: str | None, rules: tuple[str, ...], output: str) -> None:
    """Show the zones of all ZoneIsolation rules: their health, and how far an isolation is.

    Exit code: 0; 1 where an isolation has failed; 3 where the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        groups = look(settings, bus)
        rows = [row for rule in _rules(settings) for row in rows_of(rule, group_of(groups, rule))]
    click.echo({"json": as_json, "yaml": as_yaml, "table": as_table}[output](rows) if rows else "no ZoneIsolation rule")
    if any(row["status"] == "Failed" for row in rows):
        sys.exit(1)


@click.command()
@click.argument("rule")
@click.argument("zone")
@click.option("--force", is_flag=True, help="Pass over the guards that can be forced. The comment has to say why.")
@click.option("--allow-single-zone", multiple=True, metavar="SERVICE", help="A service that may go down with it.")
@asking
def isolate(asker: Asker, rule: str, zone: str, *, force: bool, allow_single_zone: tuple[str, ...]) -> None:
    """Take ZONE out of service by the plan of RULE, after showing the plan and what each guard says.

    What cannot be followed is refused by the reactor and stands in its audit, so it is asked even what is plain here.

    Exit code: 0; 1 where it is refused, held by a guard, or nobody said yes; 3 where the bus cannot be reached.
    """
    with told():
        found = _rule(asker.settings, rule)
        group = group_of(look(asker.settings, asker.bus_url), found)
        shown = planned(found, group, zone, force=force, allowed=allow_single_zone)
        asker.confirmed(in_words(found, shown))

        def make(at: datetime) -> IsolateZone:
            words = asker.words(at)
            return IsolateZone(rule=rule, zone=zone, force=force, allow_single_zone=allow_single_zone, **words)

        _ended(send(asker, make, effect(found, zone)))


@click.command()
@click.argument("rule")
@asking
def failback(asker: Asker, rule: str) -> None:
    """Bring the isolated zone of RULE back: the network first, its nodes last and in batches.

    It begins once the zone has been proven healthy for recoverySeconds.

    Exit code: 0; 1 where it is refused or nobody said yes; 3 where the bus cannot be reached.
    """
    _remove(asker, rule, running=False)


@click.command()
@click.argument("rule")
@asking
def abort(asker: Asker, rule: str) -> None:
    """Stop the isolation that RULE is carrying out, and undo what was done, last first.

    Exit code: 0; 1 where none is on its way or nobody said yes; 3 where the bus cannot be reached.
    """
    _remove(asker, rule, running=True)


@click.command()
@click.argument("rule")
@asking
def retry(asker: Asker, rule: str) -> None:
    """Go on with the isolation or failback of RULE that has failed, at the step that was not done.

    Exit code: 0; 1 where nothing has failed or nobody said yes; 3 where the bus cannot be reached.
    """
    with told():
        found, isolation = _isolated(asker, rule)
        if isolation.status != "Failed":
            raise SettingsError(f"{rule}: nothing has failed: {isolation.phase} is {isolation.status}")
        asker.confirmed(f"{rule}: go on with {isolation.phase} of {isolation.zone}: {isolation.failure}")
        make = _maker(RetryZone, asker, rule, isolation.zone)
        _ended(send(asker, make, effect(found, isolation.zone)))


@click.group()
def drill() -> None:
    """Rehearse: show what would be done, and do nothing."""


@drill.command("zone")
@click.argument("rule")
@click.argument("zone")
@_looking
def drill_zone(rule: str, zone: str, config: Path | None, bus: str | None, rules: tuple[str, ...], output: str) -> None:
    """Show the whole plan of RULE for ZONE, both ways, and what each guard says about it now. Nothing is done.

    Exit code: 0 where it would start; 1 where a guard refuses; 3 where the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        found = _rule(settings, rule, zone)
        shown = planned(found, group_of(look(settings, bus), found), zone)
    data = as_data(shown)
    click.echo(in_words(found, shown) if output == "table" else {"json": as_json, "yaml": as_yaml}[output](data))
    sys.exit(0 if shown.admitted else 1)


def _remove(asker: Asker, rule: str, *, running: bool) -> None:
    with told():
        found, isolation = _isolated(asker, rule)
        if isolation.phase == "Failback" or isolation.status == "Aborting":
            raise SettingsError(f"{rule}: {isolation.zone} is on its way back: {isolation.phase}/{isolation.status}")
        under_way = isolation.status in ("Pending", "InProgress")
        if running != under_way:
            hint = "abort" if under_way else "failback"
            raise SettingsError(f"{rule}: {isolation.phase} of {isolation.zone} is {isolation.status}: reactor {hint}")
        back = ", ".join(undo_order(found, isolation.touched)) or "nothing: it was not begun"
        what = "abort the isolation" if running else "fail back"
        asker.confirmed(f"{rule}: {what} of {isolation.zone}; undone: {back}")
        make = _maker(FailbackZone, asker, rule, isolation.zone)
        _ended(send(asker, make, effect(found, isolation.zone)))


def _maker(
    kind: type[FailbackZone | RetryZone], asker: Asker, rule: str, zone: str
) -> Callable[[datetime], FailbackZone | RetryZone]:
    return lambda at: kind(rule=rule, zone=zone, **asker.words(at))


def _rules(settings: Settings) -> list[ZoneIsolation]:
    return [rule for rule in load_alone(settings).rules if isinstance(rule, ZoneIsolation)]


def _rule(settings: Settings, name: str, zone: str | None = None) -> ZoneIsolation:
    rules = _rules(settings)
    found = next((rule for rule in rules if rule.name == name), None)
    if found is None:
        there = ", ".join(rule.name for rule in rules) or "none"
        raise SettingsError(f"no ZoneIsolation rule is called {name!r}; there are: {there}")
    names = [one.name for one in found.zones]
    if zone is not None and zone not in names:
        ids = next((one.name for one in found.zones if one.id == zone), None)
        hint = f"{zone} is the id of {ids}" if ids else f"{name} has {', '.join(names)}"
        raise SettingsError(f"{zone!r} is no zone of {name}: {hint}")
    return found


def _isolated(asker: Asker, name: str) -> tuple[ZoneIsolation, Isolation]:
    rule = _rule(asker.settings, name)
    state = group_of(look(asker.settings, asker.bus_url), rule).zone
    if state is None or state.isolation is None:
        raise SettingsError(f"{name}: no zone of {rule.object} is isolated or on its way")
    return rule, state.isolation


def _ended(word: str | None) -> None:
    finish(word)
    if word is not None and word.startswith("refused"):
        sys.exit(1)
