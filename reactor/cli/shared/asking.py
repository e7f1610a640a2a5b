"""Common part of commands that change something: options, the confirmation, publishing, waiting for the effect."""

from __future__ import annotations

import asyncio
import functools
import getpass
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bus.characters import all_seen
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import printed, say, warn
from reactor.runtime.clock import Clock
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from reactor.views.stored_groups import stored_groups
from rules.core.group import Group

if TYPE_CHECKING:
    from bus.messages import AnyCommand

PATIENCE = timedelta(seconds=3)
EFFECT = timedelta(seconds=10)
"""Time for which a command waits for its effect. A reactor that runs has answered long before."""
LOOK = 0.2


@dataclass(frozen=True, slots=True)
class Asker:
    """Origin of a command, and the options for giving it."""

    settings: Settings
    bus_url: str | None
    by: str
    comment: str
    yes: bool
    output: str
    """`text`, `json` or `yaml`. With the last two, stdout has only the result: plan and question go to stderr."""

    def confirmed(self, plan: str) -> None:
        """Print the plan, and ask. Ends the command with exit code 1 if the answer is no."""
        aside = self.output != "text"
        say(plan, err=aside)
        if not self.yes:
            click.confirm("Do it?", abort=True, err=aside)

    def words(self, at: datetime) -> dict[str, Any]:
        """Fields of every command about its origin."""
        return {"by": self.by, "reason": self.comment, "observed_at": at}


def whoami() -> str:
    """Give the name of who types. The user of a container has none: then its number, and where it is."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # KeyError up to Python 3.12
        return f"uid-{os.getuid()}@{socket.gethostname()}"


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all that carry a person's word; it gets an `Asker` as its first argument."""

    @click.option(
        "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
        help="Settings file.",
    )  # fmt: skip
    @bus_option()
    @click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'.")
    @click.option("--comment", required=True, metavar="TEXT", help="Why. The audit records it with your name.")
    @click.option(
        "--by",
        default=whoami,
        show_default="you",
        metavar="NAME",
        help="Your name. Your user on the bus is recorded too.",
    )
    @click.option("-y", "--yes", is_flag=True, help="Do not ask.")
    @output_option("text", "json", "yaml")
    @functools.wraps(command)
    def with_asker(
        config: Path | None, bus: str | None, rules: tuple[str, ...], comment: str, by: str, output: str, *, yes: bool,
        **more: Any,
    ) -> None:  # fmt: skip
        if not comment.strip():
            raise click.BadParameter("give a reason: the audit records it", param_hint="--comment")
        _refuse_unseen({"--comment": comment.strip(), "--by": by, **more})
        with told():
            settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        command(Asker(settings, bus, by, comment.strip(), yes, output), **more)

    return with_asker


def _refuse_unseen(given: Mapping[str, object]) -> None:
    """Refuse invisible characters: the audit and tables must show exactly what was typed."""
    for name, value in given.items():
        for text in value if isinstance(value, tuple) else (value,):
            try:
                all_seen(text if isinstance(text, str) else "")
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint=name) from error


def look(settings: Settings, bus_url: str | None) -> list[Group]:
    """Give the groups of this bus. Raises SettingsError, BusError."""

    async def read() -> list[Group]:
        from reactor.process.session import address, connected

        url = address(settings.bus, bus_url)
        async with connected(settings.bus, url, "look", patience=PATIENCE) as bus:
            return await stored_groups(bus, warn)

    return asyncio.run(read())


def send(
    asker: Asker, make: Callable[[datetime], AnyCommand], seen: Callable[[Sequence[Group], datetime], str | None]
) -> str | None:
    """Publish a command and wait for its effect. `seen` gives what became of it; None: nothing yet.

    Gives None where nothing was seen in time: the command is stored, and followed once a reactor reads it.
    """
    return asyncio.run(_send(asker, make, seen))


async def _send(
    asker: Asker, make: Callable[[datetime], AnyCommand], seen: Callable[[Sequence[Group], datetime], str | None]
) -> str | None:
    from reactor.process.session import address, connected, keep_time_with
    from reactor.views.commanding import give

    clock = Clock()
    url = address(asker.settings.bus, asker.bus_url)
    async with connected(asker.settings.bus, url, "command", patience=PATIENCE) as bus:
        await keep_time_with(bus, clock)
        at = clock.now()
        await give(bus, make(at), at, "cli")
        until = clock.monotonic() + EFFECT.total_seconds()
        while clock.monotonic() < until:
            if (word := seen(await stored_groups(bus, warn), at)) is not None:
                return word
            await asyncio.sleep(LOOK)
    return None


def finish(asker: Asker, word: str | None) -> None:
    """Print what became of a command. `word` is None if no reactor has processed it yet."""
    if word is None:
        say("the command is stored on the bus, but no reactor has processed it yet: see `reactor members`", err=True)
    result = word or "waiting"
    if asker.output == "text":
        say(visible(result))
    else:
        say(printed({"processed": word is not None, "result": result}, asker.output))
