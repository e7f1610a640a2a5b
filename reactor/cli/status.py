"""`reactor status`: what each rule sees, waits for, and has asked for.

Read from the bus, so that the state of every process shows.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from reactor.cli.shared.known_rules import known_rules
from reactor.cli.shared.naming import near
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_yaml, say, terminal_width, warn
from reactor.cli.shared.status_rows import table
from reactor.runtime.clock import Clock
from reactor.runtime.durations import duration
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible, visible_json
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from reactor.views.group_view import RulesByName, entry
from reactor.views.stored_groups import stored_groups
from rules.core.group import Group, Paused
from rules.engine.group_codec import to_python
from rules.engine.pauses import PAUSES
from rules.rulefile.targets import matches

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus
    from reactor.fleet.presence import Process

WATCH_SECONDS = 2.0
"""Seconds between two looks with `--watch`: what a process does is stored within a second."""


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@output_option()
@click.option("--remembered", is_flag=True, help="With json and yaml: also the stored state. Its keys may change.")
@click.option("-w", "--watch", is_flag=True, help="Print the state again when it changes, until stopped.")
@click.argument("pattern", default="*")
def status(config: Path | None, bus: str | None, output: str, pattern: str, *, remembered: bool, watch: bool) -> None:
    """Show rules and their current state. PATTERN selects rules by name.

    On a terminal, lines are not longer than its width. With --watch and -o json, each change is one line with an array.

    Exit code: 0; 1 if no rule matches, if no bus is named and none runs here, or if the bus has no streams of a
    reactor; 3 if the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config)
        shown = Shown(settings, output, pattern, remembered=remembered, compact=watch)
        asyncio.run(_follow(settings, bus, shown, watch=watch))


async def _follow(settings: Settings, url: str | None, shown: Shown, *, watch: bool) -> None:
    from reactor.process.session import address, connected

    if watch:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _leave)
    where = address(settings.bus, url)
    async with connected(settings.bus, where, "status", patience=timedelta(seconds=3)) as bus:
        await shown.once(bus)
        while watch:
            await asyncio.sleep(WATCH_SECONDS)
            await shown.once(bus)


def _leave() -> NoReturn:
    """End at once: who only looks leaves nothing undone. Cancelled in an orderly way, it did not always end:
    `wait_for` of Python 3.11, which nats-py waits with, may lose that."""
    try:
        sys.stdout.flush()
    finally:  # also where the reader of a pipe is gone
        os._exit(0)


class Shown:
    """Prints the status, and again where it has changed."""

    def __init__(self, settings: Settings, output: str, pattern: str, *, remembered: bool, compact: bool) -> None:
        self._rules: RulesByName = {rule.name: rule for rule in known_rules(settings)[0].rules}
        self._output, self._pattern = output, pattern
        self._remembered, self._compact = remembered, compact
        self._last: tuple[str, str] | None = None

    async def once(self, bus: JetStreamBus) -> None:
        """Look, and show it where it has changed."""
        from reactor.fleet.presence import present

        groups, processes, now = await stored_groups(bus, warn), await present(bus), Clock().now()
        words = "\n".join([*_pauses(groups, now), *(line for process in processes for line in _warnings(process))])
        names = {*self._rules, *(one.rule for one in groups if _meant(self._pattern, one))}
        own = self._pattern.startswith("@")
        if names and not own and not any(matches(self._pattern, name) for name in names):
            raise SettingsError(near(self._pattern, names, "rule is called"))
        text = self._text(
            [one for one in groups if matches(self._pattern, one.rule) and _meant(self._pattern, one)], now
        )
        if (words, text) == self._last:
            return
        if self._compact and self._output == "table" and sys.stdout.isatty():
            click.clear()
        if words and (self._last is None or words != self._last[0] or self._output == "table"):
            say(words, err=True)
        self._last = words, text
        click.echo(text)

    def _text(self, groups: Sequence[Group], now: datetime) -> str:
        if self._output == "table":
            return "\n".join(map(visible, table(groups, now, terminal_width(), self._rules)))
        rows = [entry(group, self._rules, now) for group in groups]
        if self._remembered:
            rows = [{**row, "remembered": to_python(group)} for row, group in zip(rows, groups, strict=True)]
        if self._output == "yaml":
            return as_yaml(rows) + ("\n---" if self._compact else "")
        return visible_json(json.dumps(rows)) if self._compact else as_json(rows)


def _pauses(groups: Sequence[Group], now: datetime) -> list[str]:
    return sorted({_pause(one.object, one.paused, now) for one in groups if one.rule == PAUSES and one.paused})


def _meant(pattern: str, group: Group) -> bool:
    """Guards and pauses are groups of the reactor's own: shown to who asks for them (`reactor status '@*'`)."""
    return pattern.startswith("@") or not group.rule.startswith("@")


def _pause(pattern: str, paused: Paused, now: datetime) -> str:
    who = f"by {paused.by} since {paused.since.isoformat(timespec='seconds')}"
    ends = f", {_left(paused, now)} left" if paused.until is not None else ""
    return visible(f"paused: rules {pattern!r} {who}{ends}: {paused.reason}")


def _left(paused: Paused, now: datetime) -> str:
    return duration((paused.until - now).total_seconds()) if paused.until is not None else ""


def _warnings(process: Process) -> list[str]:
    """On stderr, in each format: the state shown was decided by older rules than those on disk."""
    if not process.problems:
        return []
    first = f"{visible(process.name)}: its rule files cannot be used, older rules go on:"
    return [first, *(f"  {visible(problem)}" for problem in process.problems)]
