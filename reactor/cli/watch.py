"""`reactor watch`: a live screen of windows, holds, approvals and actions, with keys to approve and pause."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor.cli.shared.asking import whoami
from reactor.cli.shared.known_rules import known_rules
from reactor.cli.shared.options import bus_option
from reactor.cli.shared.outcome import told
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings import model as settings_
from reactor.settings.model import Settings

if TYPE_CHECKING:
    from reactor.cli.screen.watched import Watched

PATIENCE = timedelta(seconds=3)


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option(
    "--by", default=whoami, show_default="you", metavar="NAME", help="Your name. Your user on the bus is recorded too."
)
@click.option("--no-color", "--no-colour", is_flag=True, help="No colors. So does the environment variable NO_COLOR.")
def watch(config: Path | None, bus: str | None, by: str, *, no_color: bool) -> None:
    """Watch rules live: approvals that are waiting, windows that count down, what is held and why, and actions.

    The screen fits 80 columns and 24 lines. It says so within 3 seconds when the bus no longer answers.

    \b
    up, down, k, j    choose an item
    a, r              approve or reject what it asks for; a rejection is for one hour
    p, u              pause or resume its rule
    P, U              pause or resume all rules
    q, Ctrl-C         quit

    A command asks for a reason, which the audit records, and for a yes. With TERM=dumb, the state is printed line by
    line when it changes.

    Exit code: 0; 1 if stdout is no terminal, if no bus is named and none runs here, or if the bus has no streams of a
    reactor; 3 if the bus cannot be reached.
    """
    with told():
        if not sys.stdout.isatty():
            raise SettingsError("stdout is no terminal: use reactor status --watch")
        settings = settings_.load(config)
        root = logging.getLogger()
        root.setLevel(logging.CRITICAL)  # what clients would log is on the screen
        asyncio.run(_watch(settings, bus, by, no_color=no_color))


async def _watch(settings: Settings, url: str | None, by: str, *, no_color: bool) -> None:
    from rich.console import Console

    from reactor.cli.screen.screen_loop import Screen
    from reactor.cli.screen.watched import Watched
    from reactor.process.session import address, connected, keep_time_with

    stop, clock = asyncio.Event(), Clock()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    rules = {rule.name: rule for rule in known_rules(settings)[0].rules}
    console = Console(no_color=True if no_color else None, highlight=False, markup=False)
    async with connected(settings.bus, address(settings.bus, url), "watch", patience=PATIENCE) as bus:
        await keep_time_with(bus, clock)
        watched = Watched(bus, clock, rules)
        await watched.look_once()
        server = bus.connection.client.connected_url
        screen = Screen(watched, console, by, server.netloc.rpartition("@")[2] if server is not None else "")
        await _shown(watched, screen.run(stop))


async def _shown(watched: Watched, showing: Coroutine[None, None, None]) -> None:
    """Show it, and end at once: what only looks leaves nothing undone, and a bus that is away would be waited for."""
    following = asyncio.create_task(watched.follow())
    try:
        await showing
    except Exception:  # whatever it is, what follows the bus must not keep the process
        following.cancel()
        raise
    sys.stdout.flush()
    os._exit(0)
