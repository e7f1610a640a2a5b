"""`reactor zone isolate`, `failback`, `abort`, `retry`: isolate a zone by hand, and bring it back."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor.cli.shared.asking import Asker, asking, finish, look, send
from reactor.cli.shared.known_rules import told_rules
from reactor.cli.shared.outcome import told
from reactor.rulefiles.snapshot import load_alone
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.model import Settings
from reactor.views.zone_removal import continuation, not_to_continue, not_to_remove, removal
from reactor.views.zone_words import (
    effect,
    group_of,
    in_words,
    planned,
)
from rules.catalog import is_kept
from rules.core.group import Group
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, ZoneState

INCOMPLETE = "some rule files cannot be used"


@click.command()
@click.argument("rule")
@click.argument("zone")
@click.option("--force", is_flag=True, help="Skip the guards that can be forced. Say why in the comment.")
@click.option("--allow-single-zone", multiple=True, metavar="SERVICE", help="A service that may go down with the zone.")
@asking
def isolate(asker: Asker, rule: str, zone: str, *, force: bool, allow_single_zone: tuple[str, ...]) -> None:
    """Take ZONE out of service by the plan of RULE.

    The plan and the result of each guard are shown first. The reactor decides: a command that a guard refuses is sent
    too, and the refusal is recorded in the audit.

    Exit code: 0; 1 if it is refused, held by a guard, or not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        found = rule_called(asker.settings, rule)
        group = group_of(look(asker.settings, asker.bus_url), found)
        shown = planned(found, group, zone, Clock().now(), force=force, allowed=allow_single_zone)
        asker.confirmed(in_words(found, shown))

        def make(at: datetime) -> IsolateZone:
            words = asker.words(at)
            return IsolateZone(rule=rule, zone=zone, force=force, allow_single_zone=allow_single_zone, **words)

        _ended(asker, send(asker, make, effect(group, zone)))


@click.command()
@click.argument("rule")
@click.option("--force", is_flag=True, help="Do not wait for proof that the zone is healthy. Say why in the comment.")
@asking
def failback(asker: Asker, rule: str, *, force: bool) -> None:
    """Bring the isolated zone of RULE back.

    First the network comes back, then the nodes in batches. It begins when two signals have called the zone healthy for
    recoverySeconds. If the zone has one signal only, that one is enough, because you are the second witness. With
    --force it begins at once. The rule does not isolate the zone by itself again before the zone was healthy once.

    Exit code: 0; 1 if it is refused or not confirmed; 3 if the bus cannot be reached.
    """
    _remove(asker, rule, running=False, force=force)


@click.command()
@click.argument("rule")
@asking
def abort(asker: Asker, rule: str) -> None:
    """Stop the running isolation of RULE, and undo it.

    The steps are undone at once, the last one first. It also works while a failed step waits for its next try. The rule
    does not isolate the zone by itself again before the zone was healthy once.

    Exit code: 0; 1 if no isolation is running or it is not confirmed; 3 if the bus cannot be reached.
    """
    _remove(asker, rule, running=True)


@click.command()
@click.argument("rule")
@asking
def retry(asker: Asker, rule: str) -> None:
    """Continue a failed isolation or failback of RULE.

    It continues at the step that failed.

    Exit code: 0; 1 if nothing has failed or it is not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        _, isolation, group = _isolated(asker, rule)
        if why := not_to_continue(isolation):
            raise SettingsError(f"{rule}: {why}")
        asker.confirmed(continuation(rule, isolation))

        def make(at: datetime) -> RetryZone:
            return RetryZone(rule=rule, zone=isolation.zone, **asker.words(at))

        _ended(asker, send(asker, make, effect(group, isolation.zone)))


def _remove(asker: Asker, rule: str, *, running: bool, force: bool = False) -> None:
    with told():
        found, isolation, group = _isolated(asker, rule)
        if why := not_to_remove(isolation, running=running, force=force):
            raise SettingsError(f"{rule}: {why}")
        asker.confirmed(removal(found, group, isolation, force=force))

        def make(at: datetime) -> FailbackZone:
            return FailbackZone(rule=rule, zone=isolation.zone, force=force, **asker.words(at))

        _ended(asker, send(asker, make, effect(group, isolation.zone)))


def _rules(settings: Settings) -> list[ZoneIsolation]:
    return [rule for rule in load_alone(settings).rules if isinstance(rule, ZoneIsolation)]


def rule_called(settings: Settings, name: str, zone: str | None = None) -> ZoneIsolation:
    """Give the ZoneIsolation rule of this name. Raises SettingsError: no such rule, or no such zone in it."""
    rules = _rules(settings)
    found = next((rule for rule in rules if rule.name == name), None)
    if found is None:
        there = ", ".join(rule.name for rule in rules) or "none"
        raise SettingsError(f"no ZoneIsolation rule is called {name!r}; rules: {there}")
    names = [one.name for one in found.zones]
    if zone is not None and zone not in names:
        ids = next((one.name for one in found.zones if one.id == zone), None)
        hint = f"{zone} is the id of {ids}" if ids else f"{name} has {', '.join(names)}"
        raise SettingsError(f"{name} has no zone {zone!r}: {hint}")
    return found


def _isolated(asker: Asker, name: str) -> tuple[ZoneIsolation | None, Isolation, Group]:
    """Give rule, isolation and group. The rule is None where its file cannot be read: a typo locks no zone in."""
    rules, whole = told_rules(asker.settings, f"{INCOMPLETE}; the plan shows the stored state only")
    found = next((one for one in rules.rules if isinstance(one, ZoneIsolation) and one.name == name), None)
    groups = look(asker.settings, asker.bus_url)
    if found is None and whole and not any(group.rule == name and is_kept(group) for group in groups):
        found = rule_called(asker.settings, name)  # says which there are
    mine = [group_of(groups, found)] if found is not None else [one for one in groups if one.rule == name]
    for group in mine:
        if isinstance(group.state, ZoneState) and group.state.isolation is not None:
            return found, group.state.isolation, group
    where = f"no zone of {found.object}" if found is not None else "no zone"
    raise SettingsError(f"{name}: {where} is isolated or being isolated")


def _ended(asker: Asker, word: str | None) -> None:
    finish(asker, word)
    if word is not None and word.startswith("refused"):
        sys.exit(1)
