"""`reactor simulate --world`: seeded worlds for rules, with the promises judged on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from bus.messages import Mode
from reactor.cli.shared.printing import as_table, as_yaml
from rules.loader import RuleSet
from rules.rehearsal.world.play import play_world
from rules.rehearsal.world.shrink import shortest
from rules.rehearsal.world.world_report import Worlds, as_json, lines


def run(rules: RuleSet, seed: int, seeds: int, hours: float, output: str) -> None:
    """Play the worlds and print the results; exit 1 where a promise was broken, or none was tested of a rule."""
    worlds = Worlds(hours)
    with _progress() as say:
        for number in range(seed, seed + seeds):
            say(f"world {number}: {hours:g} h, {len(worlds.seeds)} of {seeds} played")
            result = play_world(rules, number, hours)
            worlds.add(number, result)
            if result.broken and worlds.shortest is None:
                say(f"world {number} breaks a promise: looking for the shortest history that does")
                worlds.shortest = shortest(rules, result.history, result.broken[0], result.truth)
    if output == "yaml":
        click.echo(as_yaml(as_json(worlds)))
    elif output == "json":
        click.echo(json.dumps(as_json(worlds), indent=2, ensure_ascii=False))
    else:
        _tell(worlds)
    untested = [rule.name for rule in rules.rules if rule.name not in worlds.judged and rule.mode is not Mode.OFF]
    if untested:
        click.echo(f"no promise was tested of {', '.join(untested)}: play more --hours or --seeds", err=True)
    sys.exit(1 if worlds.broken or untested else 0)


def _tell(worlds: Worlds) -> None:
    """A table; where a promise was broken on stderr, so that stdout holds the history and nothing else."""
    err = worlds.shortest is not None
    click.echo(as_table(list(worlds.rows())), err=err)
    if worlds.shortest is None:
        return
    seed, _ = worlds.broken[0]
    broken, needed = worlds.shortest.broken, ", ".join(rule.name for rule in worlds.shortest.rules.rules)
    click.echo(f"\nworld {seed}, second {broken.at}: {broken.promise}: {broken.rule}: {broken.what}", err=True)
    click.echo(f"the shortest history that was found, for {needed}: replay it with", err=True)
    play = f"--history broken.jsonl --until {broken.at} --outcomes none --enforce"
    click.echo(f"  reactor simulate --rules FILE {play}", err=True)
    for line in lines(worlds.shortest):
        click.echo(line)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """One line on a terminal, written again and again; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda text: click.echo(f"\r\033[K{text}", nl=False, err=True)
    finally:
        click.echo("\r\033[K", nl=False, err=True)
