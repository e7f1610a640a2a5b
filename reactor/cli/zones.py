"""`reactor zones`, `isolate`, `failback`, `abort`, `retry`, `drill`: zones in people's hands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor.cli.shared.asking import Asker, asking, finish, look, send
from reactor.cli.shared.known_rules import told_rules
from reactor.cli.shared.options import bus_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_table, as_yaml, say
from reactor.cli.shared.zone_words import (
    as_data,
    effect,
    group_of,
    in_words,
    left_behind,
    planned,
    rows_of,
    stored_rows,
)
from reactor.rulefiles.snapshot import load_alone
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from rules.core.group import Group
from rules.engine.registry import is_kept
from rules.kinds.zone.failback import way_back
from rules.kinds.zone.plan import undo_order
from rules.kinds.zone.state import Isolation
from rules.rulefile.zone import ZoneIsolation

NOT_ALL = "some rule files cannot be used"
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

    A zone that a rule has isolated which is in no file any more is shown too: `failback`, `abort` and `retry` go on
    working for it.

    Exit code: 0; 1 where an isolation has failed; 3 where the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        groups = look(settings, bus)
        rules_, whole = told_rules(settings, f"{NOT_ALL}, what is missing is shown as it is stored")
        known = [rule for rule in rules_.rules if isinstance(rule, ZoneIsolation)]
        rows = [row for rule in known for row in rows_of(rule, group_of(groups, rule))]
        rows += left_behind(groups, known) if whole else stored_rows(groups, known)
    say({"json": as_json, "yaml": as_yaml, "table": as_table}[output](rows) if rows else "no ZoneIsolation rule")
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

        _ended(send(asker, make, effect(group, zone)))


@click.command()
@click.argument("rule")
@click.option("--force", is_flag=True, help="Without proof that the zone is healthy. The comment has to say why.")
@asking
def failback(asker: Asker, rule: str, *, force: bool) -> None:
    """Bring the isolated zone of RULE back: the network first, its nodes last and in batches.

    It begins once the zone has been proven healthy for recoverySeconds: by two signals, or by one where only one
    speaks of it, because you are the second witness. With --force it begins at once. The rule isolates the zone by
    itself again only after it was well.

    Exit code: 0; 1 where it is refused or nobody said yes; 3 where the bus cannot be reached.
    """
    _remove(asker, rule, running=False, force=force)


@click.command()
@click.argument("rule")
@asking
def abort(asker: Asker, rule: str) -> None:
    """Stop the isolation that RULE is carrying out, and undo what was done at once, last first.

    Also while a step that was not done waits for its next try. The rule isolates the zone by itself again only after
    it was well.

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
        _, isolation, group = _isolated(asker, rule)
        if isolation.status != "Failed":
            raise SettingsError(f"{rule}: nothing has failed: {isolation.phase} is {isolation.status}")
        asker.confirmed(visible(f"{rule}: go on with {isolation.phase} of {isolation.zone}: {isolation.failure}"))

        def make(at: datetime) -> RetryZone:
            return RetryZone(rule=rule, zone=isolation.zone, **asker.words(at))

        _ended(send(asker, make, effect(group, isolation.zone)))


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
    say(in_words(found, shown) if output == "table" else {"json": as_json, "yaml": as_yaml}[output](data))
    sys.exit(0 if shown.admitted else 1)


def _remove(asker: Asker, rule: str, *, running: bool, force: bool = False) -> None:
    with told():
        found, isolation, group = _isolated(asker, rule)
        if (isolation.phase == "Failback" and not force) or isolation.status == "Aborting":
            hint = "" if isolation.status == "Aborting" else "; --force opens it without proof"
            raise SettingsError(
                f"{rule}: {isolation.zone} is on its way back: {isolation.phase}/{isolation.status}{hint}"
            )
        begun = isolation.phase == "Failover" and isolation.status in ("Pending", "InProgress")
        finished = isolation.status == "Done"
        if (running and finished) or (not running and begun and not force):
            hint = "abort" if begun else "failback"
            raise SettingsError(f"{rule}: {isolation.phase} of {isolation.zone} is {isolation.status}: reactor {hint}")
        undone = undo_order(found, isolation.touched) if found is not None else isolation.touched[::-1]
        back = ", ".join(undone) or "nothing: it was not begun"
        what = "fail back" if finished or isolation.phase == "Failback" else "abort the isolation"
        proof = way_back(found, group, isolation.zone) if found is not None else "as the reactor's own rules say"
        when = proof if finished and not force else "at once"
        asker.confirmed(visible(f"{rule}: {what} of {isolation.zone}; undone: {back}; begins: {when}"))

        def make(at: datetime) -> FailbackZone:
            return FailbackZone(rule=rule, zone=isolation.zone, force=force, **asker.words(at))

        _ended(send(asker, make, effect(group, isolation.zone)))


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


def _isolated(asker: Asker, name: str) -> tuple[ZoneIsolation | None, Isolation, Group]:
    """Give what is steered; without its rule where that cannot be read, since nobody may be locked in by a typo."""
    rules, whole = told_rules(asker.settings, f"{NOT_ALL}, the plan may show only what stands")
    found = next((one for one in rules.rules if isinstance(one, ZoneIsolation) and one.name == name), None)
    groups = look(asker.settings, asker.bus_url)
    if found is None and whole and not any(group.rule == name and is_kept(group) for group in groups):
        found = _rule(asker.settings, name)  # says which there are
    mine = [group_of(groups, found)] if found is not None else [one for one in groups if one.rule == name]
    for group in mine:
        if group.zone is not None and group.zone.isolation is not None:
            return found, group.zone.isolation, group
    where = f"no zone of {found.object}" if found is not None else "no zone"
    raise SettingsError(f"{name}: {where} is isolated or on its way")


def _ended(word: str | None) -> None:
    finish(word)
    if word is not None and word.startswith("refused"):
        sys.exit(1)
