"""`reactor zones`, `isolate`, `failback`, `abort`, `retry`, `drill`: zones in people's hands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import click

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor import settings as settings_
from reactor.cli.asking import Asker, asking, finish, look, send
from reactor.cli.outcome import told
from reactor.cli.printing import as_json, as_table, as_yaml
from reactor.clock import Clock
from reactor.errors import SettingsError
from reactor.rulefiles import load_for
from reactor.settings import Settings
from rules.group import Group
from rules.kinds.zone_machine import PENDING
from rules.kinds.zone_plan import Plan, Planned, mode_of, plan
from rules.kinds.zone_record import place_of
from rules.kinds.zone_request import request_for
from rules.kinds.zone_time import PENDING_MAX
from rules.language.zone import ZoneIsolation
from rules.states.zone import Isolation, ZoneState

ON = (
    click.option(
        "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
        help="Settings file.",
    ),
    click.option("--bus", metavar="URL", help="NATS server; by default the one that a local reactor has embedded."),
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
        rows = [row for rule in _rules(settings) for row in _rows(rule, _group(groups, rule))]
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

    Exit code: 0; 1 where it is refused, held by a guard, or nobody was asked; 3 where the bus cannot be reached.
    """
    with told():
        found = _rule(asker.settings, rule)
        group = _group(look(asker.settings, asker.bus_url), found)
        shown = _plan(found, group, zone, force=force, allowed=allow_single_zone)
        asker.confirmed(_in_words(found, shown))

        def make(at: datetime) -> IsolateZone:
            words = asker.words(at)
            return IsolateZone(rule=rule, zone=zone, force=force, allow_single_zone=allow_single_zone, **words)

        _ended(send(asker, make, _effect(found, zone)))


@click.command()
@click.argument("rule")
@asking
def failback(asker: Asker, rule: str) -> None:
    """Bring the isolated zone of RULE back: the network first, its nodes last and in batches.

    It begins once the zone has been proven healthy for recoverySeconds.

    Exit code: 0; 1 where it is refused or nobody was asked; 3 where the bus cannot be reached.
    """
    _remove(asker, rule, running=False)


@click.command()
@click.argument("rule")
@asking
def abort(asker: Asker, rule: str) -> None:
    """Stop the isolation that RULE is carrying out, and undo what was done, last first.

    Exit code: 0; 1 where none is on its way or nobody was asked; 3 where the bus cannot be reached.
    """
    _remove(asker, rule, running=True)


@click.command()
@click.argument("rule")
@asking
def retry(asker: Asker, rule: str) -> None:
    """Go on with the isolation or failback of RULE that has failed, at the step that was not done.

    Exit code: 0; 1 where nothing has failed or nobody was asked; 3 where the bus cannot be reached.
    """
    with told():
        found, isolation = _isolated(asker, rule)
        if isolation.status != "Failed":
            raise SettingsError(f"{rule}: nothing has failed: {isolation.phase} is {isolation.status}")
        asker.confirmed(f"{rule}: go on with {isolation.phase} of {isolation.zone}: {isolation.failure}")
        make = _maker(RetryZone, asker, rule, isolation.zone)
        _ended(send(asker, make, _effect(found, isolation.zone)))


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
        shown = _plan(found, _group(look(settings, bus), found), zone)
    data = _as_data(shown)
    click.echo(_in_words(found, shown) if output == "table" else {"json": as_json, "yaml": as_yaml}[output](data))
    sys.exit(0 if shown.admitted else 1)


def _remove(asker: Asker, rule: str, *, running: bool) -> None:
    with told():
        found, isolation = _isolated(asker, rule)
        under_way = isolation.phase == "Failover" and isolation.status in ("Pending", "InProgress")
        if running != under_way:
            hint = "abort" if under_way else "failback"
            raise SettingsError(f"{rule}: {isolation.phase} of {isolation.zone} is {isolation.status}: reactor {hint}")
        back = ", ".join(reversed(isolation.touched)) or "nothing: it was not begun"
        what = "abort the isolation" if running else "fail back"
        asker.confirmed(f"{rule}: {what} of {isolation.zone}; undone: {back}")
        make = _maker(FailbackZone, asker, rule, isolation.zone)
        _ended(send(asker, make, _effect(found, isolation.zone)))


def _maker(
    kind: type[FailbackZone | RetryZone], asker: Asker, rule: str, zone: str
) -> Callable[[datetime], FailbackZone | RetryZone]:
    return lambda at: kind(rule=rule, zone=zone, **asker.words(at))


def _rules(settings: Settings) -> list[ZoneIsolation]:
    return [rule for rule in load_for(settings).rules if isinstance(rule, ZoneIsolation)]


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


def _group(groups: Iterable[Group], rule: ZoneIsolation) -> Group:
    """The rule's group as it is stored; one that knows nothing where there is none yet."""
    return next((group for group in groups if group.rule == rule.name), Group(rule.name, rule.object))


def _isolated(asker: Asker, name: str) -> tuple[ZoneIsolation, Isolation]:
    rule = _rule(asker.settings, name)
    state = _group(look(asker.settings, asker.bus_url), rule).zone
    if state is None or state.isolation is None:
        raise SettingsError(f"{name}: no zone of {rule.object} is isolated or on its way")
    return rule, state.isolation


def _plan(rule: ZoneIsolation, group: Group, zone: str, *, force: bool = False, allowed: tuple[str, ...] = ()) -> Plan:
    now = Clock().now()
    seen = group.zone.seen if group.zone is not None else None
    mode = mode_of(seen.zones.get(zone) if seen is not None else None, now)
    request = request_for(rule, group, zone, now, by_hand=True, force=force, allowed=allowed)
    return plan(rule, request, mode)


def _in_words(rule: ZoneIsolation, shown: Plan) -> str:
    """The plan for people: guards first, then what is done, and how it is undone."""
    lines = [f"{rule.name}: isolate {shown.zone} of {rule.object} ({rule.carrier}, {shown.mode}, mode {rule.mode})"]
    lines += ["guards:"]
    lines += [f"  {'passes' if check.passed else 'REFUSES'}  {check.reason}: {check.detail}" for check in shown.guards]
    for title, steps in (("steps:", shown.failover), ("and back:", shown.failback)):
        lines.append(title)
        lines += [f"  {'undo ' if one.undo else ''}{one.step} (within {one.timeout_seconds:g} s)" for one in steps]
    return "\n".join(lines)


def _as_data(shown: Plan) -> dict[str, object]:
    def steps(of: Sequence[Planned]) -> list[dict[str, object]]:
        return [
            {"step": one.step, "undo": one.undo, "timeoutSeconds": one.timeout_seconds, "settings": one.settings}
            for one in of
        ]

    guards = [{"guard": str(one.reason), "passed": one.passed, "detail": one.detail} for one in shown.guards]
    return {
        "zone": shown.zone, "mode": shown.mode, "admitted": shown.admitted, "guards": guards,
        "failover": steps(shown.failover), "failback": steps(shown.failback),
    }  # fmt: skip


def _rows(rule: ZoneIsolation, group: Group) -> list[dict[str, object]]:
    state = group.zone or ZoneState()
    out: list[dict[str, object]] = []
    for zone in rule.zones:
        member = group.members.get(rule.target(zone.name))
        nodes = state.seen.zones.get(zone.name) if state.seen is not None else None
        mine = state.isolation if state.isolation is not None and state.isolation.zone == zone.name else None
        said = mine.failure or mine.trouble if mine is not None else ""
        held = group.held if group.held is not None and (group.held.about or "").endswith(f"/{zone.name}") else None
        out.append({
            "rule": rule.name, "zone": f"{rule.object}/{zone.name}", "id": zone.id,
            "health": str(member.status) if member is not None else "not heard of",
            "nodes": f"{nodes.healthy}/{nodes.nodes}" if nodes is not None else "",
            "phase": mine.phase if mine else "", "status": mine.status if mine else "",
            "done": list(mine.done) if mine else [], "since": mine.since.isoformat(timespec="seconds") if mine else "",
            "detail": said or (f"{held.reason}: {held.detail}" if held else ""),
        })  # fmt: skip
    return out


def _effect(rule: ZoneIsolation, zone: str) -> Callable[[Sequence[Group], datetime], str | None]:
    """What became of a command given at a moment, from the stored state of its rule."""

    def seen(groups: Sequence[Group], at: datetime) -> str | None:
        group = _group(groups, rule)
        state = group.zone
        if state is None or state.commanded_at is None or state.commanded_at < at:
            return None
        if state.refused is not None and state.refused.at >= at:
            return f"refused: {state.refused.reason}: {state.refused.detail}"
        isolation = state.isolation
        if isolation is None:
            return f"{zone} is not isolated"
        waits = f"{group.held.reason}: {group.held.detail}" if group.held is not None else ""
        if waits and place_of(isolation) == PENDING:
            minutes = PENDING_MAX.total_seconds() / 60
            return f"refused for now: {waits} (asked again for {minutes:g} minutes; reactor abort takes it back)"
        return f"{isolation.phase} of {isolation.zone} is {isolation.status}" + (f", held: {waits}" if waits else "")

    return seen


def _ended(word: str | None) -> None:
    finish(word)
    if word is not None and word.startswith("refused"):
        sys.exit(1)
