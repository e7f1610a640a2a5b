"""`reactor run`: run the reactor."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bus.errors import BusError
from reactor.cli.shared.options import bus_option
from reactor.cli.shared.printing import say
from reactor.runtime.deadline import Deadline, end_children
from reactor.runtime.errors import ReactorError
from reactor.runtime.garbage import stop_collecting
from reactor.runtime.telemetry import start_logging
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from rules.core.errors import RulesError

ROLES = ("observer", "receiver", "router", "decider", "executor")
"""Roles of `all`, as in reactor.process.role_set, which `--help` does not import."""
WEB = "web"
"""Serves the page: only where it is named."""
DESCRIPTORS_MAX = 65_536


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file (YAML). Environment variables like REACTOR_BUS__URL override it.",
)  # fmt: skip
@click.option(
    "--rules",
    multiple=True,
    metavar="FILE",
    help="Rule file, folder or glob, added to those of the settings.",
)
@click.option(
    "--roles",
    default="all",
    show_default=True,
    help=f"Roles, separated by commas: {', '.join(ROLES)}, or all of these; and web.",
)
@bus_option(otherwise="an embedded one is started")
@click.option("--listen", metavar="HOST:PORT", help="Address for webhooks.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much to log.")
@click.argument("files", nargs=-1)
def run(
    config: Path | None, rules: tuple[str, ...], roles: str, bus: str | None, listen: str | None,
    log_level: str | None, files: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the reactor until it is stopped.

    One process runs all roles by default. FILES are rule files, as with --rules, in addition to those of the settings.
    The reactor loads changed rule files within seconds, or at once on SIGHUP. If files cannot be used, it keeps the
    rules it has.

    \b
    reactor run rules/shop.yaml
    reactor run --config reactor.yaml
    reactor run --config reactor.yaml --roles observer,receiver
    reactor run --config reactor.yaml --roles all,web         with the page, on http://127.0.0.1:8490
    """
    try:
        _take_descriptors()
        wanted = _roles(roles)
        settings = _settings(config, rules=(*rules, *files), bus=bus, listen=listen, log_level=log_level)
        lines = start_logging(settings.log_format, settings.log_level)
        try:
            asyncio.run(_run(settings, wanted, lines.put, Deadline(lambda: lines.close(0.3))))
        finally:
            end_children()
    except (ReactorError, RulesError, BusError) as error:
        say(f"reactor: {error}", err=True)
        sys.exit(1)


def _take_descriptors() -> None:
    """Take as many file descriptors as we may, as Go's runtime does: a shell gives 1,024, which connections fill."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _roles(text: str) -> frozenset[str]:
    named = {role.strip() for role in text.split(",") if role.strip()}
    wanted = frozenset((named - {"all"}) | (set(ROLES) if "all" in named else set()))
    if unknown := sorted(wanted - {*ROLES, WEB}):
        known = ", ".join(("all", *ROLES, WEB))
        raise click.BadParameter(f"no role {unknown[0]!r}; roles: {known}", param_hint="--roles")
    if not wanted:
        raise click.BadParameter("name at least one role", param_hint="--roles")
    return wanted


def _settings(
    config: Path | None, *, rules: tuple[str, ...], bus: str | None, listen: str | None, log_level: str | None
) -> Settings:
    loaded = settings_.load(config)
    given: dict[str, Any] = {}
    if rules:
        given["rule_files"] = (*loaded.rule_files, *rules)
    if bus:
        given["bus"] = loaded.bus.model_copy(update={"url": bus})
    if listen:
        given["receiver"] = {**loaded.receiver.model_dump(by_alias=True), "listen": listen}
    if log_level:
        given["log_level"] = log_level
    return settings_.load(config, **given) if given else loaded


async def _run(settings: Settings, roles: frozenset[str], say: Callable[[str], None], deadline: Deadline) -> None:
    from reactor.process.app import App

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    app = App(settings, roles)

    def end() -> None:
        if not stop.is_set():
            deadline.begin()
            stop_collecting()
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGHUP, app.reload)
    async with app:
        listens = f"health on {app.health_url}"
        if app.receiver_url:
            listens = f"webhooks on {app.receiver_url}/v1/alerts/<source>, {listens}"
        page = f"; page on {app.web_url}" if app.web_url else ""
        say(f"reactor {app.name}: {', '.join(sorted(roles))}; {listens}{page}")
        died = asyncio.create_task(app.failed())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({died, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if died.done():
            await died
        died.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await died
