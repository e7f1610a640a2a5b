"""`reactor simulate`: a history played through rules on virtual time, one JSON line for each thing that comes out."""

from __future__ import annotations

import sys

import click

from reactor.cli.files import STDIN, Text, count, fail, find_rules, read_all
from rules.bench import history as history_
from rules.bench.simulator import simulate as play
from rules.engine.routing import Routing
from rules.errors import InvalidFiles, InvalidHistory
from rules.language import loader

LONG = 20_000
"""Events from which a terminal is told that it takes a while."""


@click.command()
@click.option("--rules", "-r", multiple=True, metavar="FILE", help="Rule file, folder or glob; may be repeated.")
@click.option("--history", required=True, metavar="FILE", help="History: one JSON event a line. - is stdin.")
@click.option(
    "--until", type=click.FloatRange(min=0, max=history_.SECONDS_MAX), metavar="SECOND",
    help="Play up to and including this second. Default: the second of the last event.",
)  # fmt: skip
@click.option(
    "--outcomes",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: every action is Done at once. none: only the history's own outcomes count.",
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
def simulate(rules: tuple[str, ...], history: str, until: float | None, outcomes: str, files: tuple[str, ...]) -> None:
    """Play a history through rules.

    Prints one JSON line for every action, hold and notification, on virtual time: hours take seconds. The same input
    gives the same output, byte for byte. FILE is a further rule file, as with --rules.

    \b
    reactor simulate --rules shop.yaml --history outage.jsonl
    reactor simulate --rules rules/ --history - --until 3600 < outage.jsonl

    \b
    {"at": 0, "observe": {"target": "service/east/shop/checkout", "status": "Unhealthy"}}

    Exit code: 0, or 1 where a file cannot be used.
    """
    names, problems = find_rules((*rules, *files))
    if not names and not problems:
        raise click.UsageError("name at least one rule file, with --rules FILE")
    if STDIN in names and history == STDIN:
        raise click.UsageError("rules and history cannot both be read from stdin")
    try:
        loaded = loader.load(read_all(names, problems))
    except InvalidFiles as error:
        fail([*problems, *error.problems])
    (text,) = [*read_all([history], problems)] or [("", "")]
    if problems:
        fail(problems)
    _play(loaded, text, until=until, outcomes=outcomes == "auto")


def _play(rules: loader.RuleSet, text: Text, *, until: float | None, outcomes: bool) -> None:
    name, body = text
    try:
        events = history_.read(history_.lines_of(body), name)
    except InvalidHistory as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    if len(events) >= LONG and sys.stderr.isatty():
        click.echo(f"playing {count(len(events), 'event')}…", err=True)
    out = sys.stdout
    end = history_.last(events) if until is None else until
    for line in play(Routing.of(rules), events, until=end, outcomes=outcomes):
        out.write(line + "\n")
    out.flush()
