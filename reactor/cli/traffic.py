"""`reactor traffic`: where the traffic of routes is, and moving it by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import click

from bus.messages import FailbackTraffic, FailoverTraffic, Mode, ReleaseTraffic, TrafficCommand
from reactor.cli.shared.asking import Asker, asking, finish, look, send
from reactor.cli.shared.naming import near
from reactor.cli.shared.options import Duration, bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import printed, say, terminal_width
from reactor.cli.shared.traffic_table import rules_of, table
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.views.traffic_plan import followed, planned, state_of
from rules.core.group import Group
from rules.rulefile.targets import matches
from rules.summary import route_of

FOR = click.option(
    "--for", "for_", type=Duration(), metavar="TIME", help="How long: 30m, 1h30m. Default: until release."
)
FORCE = click.option("--force", is_flag=True, help="Also use backends that are not Healthy. Say why in the comment.")


@click.group()
def traffic() -> None:
    """Show where the traffic of routes goes, move it away, bring it back, or return control to the rules.

    \b
    reactor traffic failover checkout --for 1h --comment "CHG-1: kernel update"     a planned drain
    reactor traffic failback checkout --comment "CHG-1: done"
    reactor traffic release checkout --comment "CHG-1: done"
    """


@traffic.command("list")
@click.argument("pattern", default="*")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@output_option()
def list_(pattern: str, config: Path | None, bus: str | None, output: str) -> None:
    """List routes and their weights.

    PATTERN selects rules by name.

    Exit code: 0; 1 if no rule matches; 3 if the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config)
        groups = _routes(look(settings, bus))
        chosen = [group for group in groups if matches(pattern, group.rule)]
        if groups and not chosen:
            raise SettingsError(near(pattern, (group.rule for group in groups), "rule moves traffic that is called"))
        rows = [state_of(group, Clock().now()) for group in chosen]
    say(printed(rows, output, lambda rows: "\n".join(table(rows, terminal_width())) or "no rule has a route yet"))


@traffic.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@click.option(
    "--to", multiple=True, metavar="SERVICE", help="Services that get the traffic. Default: the ready secondaries."
)
@FOR
@FORCE
@asking
def failover(
    asker: Asker, rule: str, object_: str | None, to: tuple[str, ...], for_: float | None, *, force: bool
) -> None:
    """Move the traffic of RULE away from its primary now.

    The command works on one OBJECT or on all. The plan is shown first. Until the time is over or you release it, the
    rule changes nothing by itself, with one exception: it moves traffic away from a backend that is bad while another
    one is Healthy. Windows, cooldowns, rates and approvals do not stop the command. A pause does.

    Exit code: 0; 1 if it is refused or not confirmed; 3 if the bus cannot be reached.
    """

    def make(at: datetime) -> FailoverTraffic:
        return FailoverTraffic(rule=rule, object=object_, to=to, for_seconds=for_, force=force, **asker.words(at))

    _command(asker, rule, object_, make)


@traffic.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@FOR
@FORCE
@asking
def failback(asker: Asker, rule: str, object_: str | None, for_: float | None, *, force: bool) -> None:
    """Bring the traffic of RULE back to its primary now.

    The command works on one OBJECT or on all, and resets the failure count. The traffic stays there until the time is
    over or you release it.

    Exit code: 0; 1 if it is refused or not confirmed; 3 if the bus cannot be reached.
    """

    def make(at: datetime) -> FailbackTraffic:
        return FailbackTraffic(rule=rule, object=object_, for_seconds=for_, force=force, **asker.words(at))

    _command(asker, rule, object_, make)


@traffic.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@asking
def release(asker: Asker, rule: str, object_: str | None) -> None:
    """Return control to RULE.

    The rule may change again what was moved or changed by hand.

    Exit code: 0; 1 if it is not confirmed; 3 if the bus cannot be reached.
    """
    _command(asker, rule, object_, lambda at: ReleaseTraffic(rule=rule, object=object_, **asker.words(at)))


def _command(asker: Asker, rule: str, object_: str | None, make: Callable[[datetime], TrafficCommand]) -> None:
    with told():
        groups = _meant(look(asker.settings, asker.bus_url), rule, object_)
        known, problem = rules_of(asker.settings)
        if problem:
            say(f"the plan shows the current weights only: {problem}", err=True)
        now = Clock().now()
        lines = [planned(known.get(rule), group, make(now), now) for group in groups]
        asker.confirmed(
            "\n".join([f"{type(make(now)).__name__} of {rule}:", *(f"  {visible(line)}" for line in lines)])
        )
        objects = {group.object for group in groups}
        word = send(asker, make, lambda found, at: _followed(found, rule, objects, at))
    finish(asker, word)
    if word is not None and "refused" in word:
        sys.exit(1)


def _routes(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if route_of(group) is not None]


def _meant(groups: Iterable[Group], rule: str, object_: str | None) -> list[Group]:
    routes = _routes(groups)
    mine = [group for group in routes if group.rule == rule]
    if not mine:
        raise SettingsError(near(rule, (group.rule for group in routes), "rule moves traffic that is called"))
    chosen = [group for group in mine if object_ in (None, group.object)]
    if not chosen:
        raise SettingsError(near(str(object_), (group.object for group in mine), f"route of {rule} is called"))
    if all(group.mode is Mode.OFF for group in chosen):
        raise SettingsError(f"{rule} is in mode Off: it moves nothing, not even on a command")
    return chosen


def _followed(found: Sequence[Group], rule: str, objects: set[str], at: datetime) -> str | None:
    """Result of the command for each object, one line each; None: not all have received it."""
    words = []
    for group in found:
        if group.rule == rule and group.object in objects:
            if (word := followed(group, at)) is None:
                return None
            words.append(f"{group.object}: {word}")
    return "\n".join(words) or None
