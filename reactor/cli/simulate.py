"""`reactor simulate`: a history played through rules on virtual time, one JSON line for each thing that comes out.

With `--world`, a history is invented and judged: see `reactor.cli.shared.simulated_worlds`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from reactor.cli.shared.files import STDIN, Text, count, fail, find_rules, read_all
from reactor.cli.shared.options import SecondsType
from reactor.cli.shared.printing import as_yaml, say
from reactor.runtime.visible import visible, visible_json
from rules import loader
from rules.core.errors import InvalidFiles, InvalidHistory
from rules.engine.routing import Routing
from rules.rehearsal import history as history_
from rules.rehearsal.silence import SECONDS_MAX
from rules.rehearsal.simulator import in_words
from rules.rehearsal.simulator import simulate as play
from rules.rehearsal.world.world_topology import enforced

Show = Callable[..., Iterator[str]]
LONG = 20_000
"""Events from which a terminal is told that it takes a while."""


@click.command()
@click.option("--rules", "-r", multiple=True, metavar="FILE", help="Rule file, folder or glob. Repeatable.")
@click.option("--history", metavar="FILE", help="History: one JSON event a line. - is stdin.")
@click.option(
    "--until", type=SecondsType(0, SECONDS_MAX), metavar="TIME",
    help="Play up to and including this second, as 600 or 10m. Default: the second of the last event.",
)  # fmt: skip
@click.option(
    "--outcomes",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: every action is Done at once. none: only the outcomes of the history count.",
)
@click.option("--enforce", is_flag=True, help="Let rules in mode DryRun act, as they do in a world.")
@click.option("--world", type=click.IntRange(min=0), metavar="SEED", help="Use a world of this seed, not a history.")
@click.option(
    "--hours", type=click.FloatRange(min=0.1, max=24 * 366), default=24.0, show_default=True,
    help="World: duration.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(min=1, max=100_000), default=1, show_default=True,
    help="World: number of seeds, beginning with this one.",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    help="json: one object a line, the default of a history. yaml: one document each. text: for people, the default "
    "of a world.",
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
def simulate(
    rules: tuple[str, ...], history: str | None, until: float | None, outcomes: str, files: tuple[str, ...], *,
    enforce: bool, world: int | None, hours: float, seeds: int, output: str | None,
) -> None:  # fmt: skip
    """Play a history, or a seeded world, through rules.

    The command prints one JSON line for each action, hold and notification. It uses virtual time: hours take seconds.
    With -o text the output is for people, and gives the cause. The same input gives the same output, byte for byte.
    FILE is a rule file, as with --rules.

    \b
    reactor simulate --rules shop.yaml --history outage.jsonl
    reactor simulate --rules rules/ --history - --until 3600 < outage.jsonl

    \b
    {"at": 0, "observe": {"target": "service/east/shop/checkout", "status": "Unhealthy", "signal": "readiness"}}
    {"at": 3, "silence": {"signal": "readiness", "seconds": 15}}

    A world is a generated history for the targets of the rules: outages, flaps, mass failures, sources that are late,
    silent or wrong, actions that fail or are lost. The promises are checked during the run. If a seed breaks one, the
    command prints the shortest history that does.

    \b
    reactor simulate --rules shop.yaml --world 7 --hours 48 --seeds 10

    Exit code: 0; 1 if a file cannot be used, if a promise is broken, or if a world tested no promise of a rule.
    """
    if (history is None) == (world is None):
        raise click.UsageError("give a history with --history FILE, or a world with --world SEED")
    names, problems = find_rules((*rules, *files))
    if not names and not problems:
        raise click.UsageError("name at least one rule file, with --rules FILE")
    if STDIN in names and history == STDIN:
        raise click.UsageError("rules and history cannot both be read from stdin")
    try:
        loaded = loader.load_rules(read_all(names, problems))
    except InvalidFiles as error:
        fail([*problems, *error.problems])
    texts = [] if history is None else [*read_all([history], problems)]
    if problems:
        fail(problems)
    if world is not None:
        from reactor.cli.shared.simulated_worlds import run

        run(loaded, world, seeds, hours, output or "text")
    show = {"text": in_words, "yaml": _documents}.get(output or "json", play)
    for text in texts:
        _play(enforced(loaded) if enforce else loaded, text, show, until=until, outcomes=outcomes == "auto")


def _documents(*args: Any, **options: Any) -> Iterator[str]:
    """The lines of `play`, each as a YAML document."""
    for line in play(*args, **options):
        yield f"---\n{as_yaml(json.loads(line))}"


def _play(rules: loader.RuleSet, text: Text, show: Show, *, until: float | None, outcomes: bool) -> None:
    name, body = text
    try:
        past = history_.load_history(history_.lines_of(body), name)
    except InvalidHistory as error:
        say(str(error), err=True)
        sys.exit(1)
    if len(past.events) >= LONG and sys.stderr.isatty():
        say(f"playing {count(len(past.events), 'event')}…", err=True)
    out = sys.stdout
    end = past.until if until is None else until
    visible_as = visible_json if show is play else visible if show is in_words else str
    for line in show(Routing.of(rules), past.events, until=end, outcomes=outcomes):
        out.write(visible_as(line) + "\n")
    out.flush()
