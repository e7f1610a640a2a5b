"""`reactor status`: what each rule sees, waits for, and has asked for.

Read from the bus, so that the state of every process shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor import settings as settings_
from reactor.cli.asking import stored_groups
from reactor.cli.options import bus_option
from reactor.cli.outcome import told
from reactor.cli.printing import as_json, as_yaml, duration, say
from reactor.clock import Clock
from reactor.settings import BusSettings
from reactor.visible import visible
from rules.engine.pauses import PAUSES
from rules.group import Group, Paused, to_python
from rules.language.targets import matches

if TYPE_CHECKING:
    from reactor.presence import Process


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.argument("pattern", default="*")
def status(config: Path | None, bus: str | None, output: str, pattern: str) -> None:
    """Show rules and what they stand at. PATTERN selects rules by name.

    Exit code: 0; 1 where no bus is named and none runs here, or it has no reactor's streams; 3 where the bus cannot be
    reached.
    """
    with told():
        from reactor.connecting import address

        settings = settings_.load(config).bus
        groups, processes = asyncio.run(_read(settings, address(settings, bus)))
    chosen = [group for group in groups if matches(pattern, group.rule) and _meant(pattern, group)]
    now = Clock().now()
    for line in sorted({_pause(one.object, one.paused, now) for one in groups if one.rule == PAUSES and one.paused}):
        say(line, err=True)
    for process in processes:
        _warn(process)
    if output == "table":
        _table(chosen, now)
        return
    rows = [to_python(group) for group in chosen]
    say(as_json(rows) if output == "json" else as_yaml(rows))


async def _read(settings: BusSettings, url: str | Sequence[str]) -> tuple[list[Group], Sequence[Process]]:
    from reactor.connecting import connected
    from reactor.presence import present

    async with connected(settings, url, "status", patience=timedelta(seconds=3)) as bus:
        groups = await stored_groups(bus)
        processes = await present(bus)
    return groups, processes


def _meant(pattern: str, group: Group) -> bool:
    """Guards and pauses are groups of the reactor's own: shown to who asks for them (`reactor status '@*'`)."""
    return pattern.startswith("@") or not group.rule.startswith("@")


def _pause(pattern: str, paused: Paused, now: datetime) -> str:
    who = f"by {paused.by} since {paused.since.isoformat(timespec='seconds')}"
    ends = f", {_left(paused, now)} left" if paused.until is not None else ""
    return visible(f"paused: rules {pattern!r} {who}{ends}: {paused.reason}")


def _left(paused: Paused, now: datetime) -> str:
    return duration((paused.until - now).total_seconds()) if paused.until is not None else ""


def _warn(process: Process) -> None:
    """On stderr, whatever is printed: what stands here was decided by older rules than those on the disk."""
    if process.problems:
        say(f"{visible(process.name)}: its rule files cannot be used, older rules go on:", err=True)
        for problem in process.problems:
            say(f"  {visible(problem)}", err=True)


def row(group: Group, now: datetime) -> dict[str, str]:
    """One line of the table: state in a word, what is waited for, and why."""
    windows = [member.window for member in group.members.values() if member.window is not None]
    owed = next(iter(group.owed), None)
    if group.paused is not None and group.held is None:
        state, detail = "Paused", f"by {group.paused.by}: {group.paused.reason}"
    elif group.held is not None:
        state, detail = "Held", f"{group.held.reason}: {group.held.detail}"
    elif owed is not None:
        state, detail = "Acting", owed.failed or owed.action.id
    elif windows:
        state = "Recovering" if all(window.healthy for window in windows) else "Tolerating"
        detail = ", ".join(f"{t}: {m.status}" for t, m in group.members.items() if m.window is not None)
    else:
        bad = [target for target, member in group.members.items() if member.settled is False]
        state, detail = ("Acted", ", ".join(bad)) if bad else ("Watching", "")
    left = f"{max((group.wake_at - now).total_seconds(), 0):.1f}s" if group.wake_at and windows else ""
    if group.paused is not None and group.paused.until is not None:
        left = _left(group.paused, now)  # no window of a paused rule leads to anything before
    weights = " ".join(f"{service}={weight}" for service, weight in (group.route.backends if group.route else ()))
    return {
        "RULE": group.rule, "OBJECT": group.object, "STATE": state, "LEFT": left, "WEIGHTS": weights,
        "DETAIL": visible(detail),
    }  # fmt: skip


def _table(groups: Iterable[Group], now: datetime) -> None:
    rows = [row(group, now) for group in groups]
    if not rows:
        say("no rule has anything yet")
        return
    widths = {key: max(len(key), *(len(line[key]) for line in rows)) for key in rows[0]}
    for line in [{key: key for key in rows[0]}, *rows]:
        say("  ".join(text.ljust(widths[key]) for key, text in line.items()).rstrip())
