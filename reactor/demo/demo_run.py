"""The demo from start to end: build the world, start the real reactor in it, tell the story, take everything down."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bus.errors import BusError
from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld, world
from reactor.demo.display import Display, display
from reactor.demo.errors import NotAsTold
from reactor.demo.folder import temporary_folder
from reactor.demo.story import Story
from reactor.demo.suggestions import hints
from reactor.demo.watcher import Watcher
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from reactor.runtime.telemetry import start_logging

if TYPE_CHECKING:
    from reactor.process.app import App

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOG_LINES = 15
"""Lines of the reactor's log that are shown when it went wrong: the folder with the whole of it is about to go."""


def run(*, once: bool, verbose: bool) -> int:
    """Run the demo, and give the exit code. Raises ReactorError, BusError where it cannot go on."""
    for name in [name for name in os.environ if name.lower() in _PROXIES]:
        del os.environ[name]  # everything is on loopback, where a proxy cannot go
    return asyncio.run(_interruptible(once=once, verbose=verbose))


async def _interruptible(*, once: bool, verbose: bool) -> int:
    """Let a signal end the demo in its orderly way: everything is put away. A second one skips what still hangs."""
    loop, main = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def interrupt(number: int) -> None:
        received.append(number)
        if main is not None:
            main.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt, number)
    told = asyncio.Event()
    try:
        await _demo(told, once=once, verbose=verbose)
    except asyncio.CancelledError:
        if not received:
            raise
        # After the story, Ctrl-C is how the demo is meant to end.
        return 0 if told.is_set() and received[0] == signal.SIGINT else 128 + received[0]
    return 0


async def _demo(told: asyncio.Event, *, once: bool, verbose: bool) -> None:
    clock = Clock()
    with ExitStack() as stack:
        shown = stack.enter_context(display(clock, sys.stdout))
        shown.title("alert-reactor demo: everything is on loopback, and nothing is left behind")
        folder = stack.enter_context(temporary_folder())
        log = folder / "reactor.log"
        if verbose:
            start_logging("logfmt", "info")
        else:
            stack.enter_context(_logging_to(log))
            shown.say("log", str(log))
        try:
            async with world(folder, clock) as built:
                await _with_reactor(built, clock, shown, told, once=once)
        except (ReactorError, BusError) as error:
            if log.exists():
                error.add_note(_end_of(log))
            raise


async def _with_reactor(built: DemoWorld, clock: Clock, shown: Display, told: asyncio.Event, *, once: bool) -> None:
    services_up = clock.monotonic()
    _introduce_world(built, shown)
    from reactor.process.app import (  # with kubernetes and nats: while it is imported, the services already answer
        ALL_ROLES,
        App,
    )

    async with App(built.settings(), ALL_ROLES | {"web"}, clock=clock) as app:
        _introduce_reactor(app, shown)
        # As stored: another reactor may decide.
        watcher = Watcher(built, app.page.board.groups if app.page is not None else list, clock, shown)
        story = Story(built, watcher, clock, shown)

        async def tell() -> None:
            figures = await story.tell(services_up)
            shown.title(f"\n{figures}")
            if complaint := figures.complaint():
                raise NotAsTold(complaint)
            told.set()
            if not once:
                shown.title(hints(built, app.receiver_url))
                await _with_buttons(built, app, clock, shown)

        await _first_of(tell(), watcher.run(), built.listen(), app.failed())


async def _with_buttons(built: DemoWorld, app: App, clock: Clock, shown: Display) -> None:
    """Let people break things until they have seen enough."""
    from reactor.demo.button_server import buttons
    from reactor.demo.error_alert import ErrorAlert
    from reactor.demo.mischief import Mischief
    from reactor.demo.second_reactor import NAME, SecondReactor

    server, second = app.server, SecondReactor(built.config)
    mischief = Mischief(built, second, lambda: server.pid if server is not None else None)
    async with buttons(mischief, f"{app.web_url}/") as url:
        await second.start()
        shown.say("reactor", f"{NAME}, a second one on the same bus")
        shown.say("buttons", f"{url} breaks things: press one, and watch the page {app.web_url}/")
        await ErrorAlert(built, lambda: app.receiver_url, clock).run()


async def _first_of(*work: Awaitable[None]) -> None:
    """Wait until one of them ends or fails, and end the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _introduce_world(built: DemoWorld, shown: Display) -> None:
    clusters = ", ".join(scene.BACKENDS.values())
    shown.say("clusters", f"{clusters} (emulated Kubernetes API), {scene.HOME} on {built.emulator.url(scene.HOME)}")
    for name, url in built.services.items():
        shown.say("service", f"{name} in {scene.BACKENDS[name]} on {url}")
    shown.say("gateway", f"{scene.REQUESTS_PER_SECOND} requests/s to the backends of TrafficSplit {_route()}")
    shown.say("rules", str(built.rules))


def _introduce_reactor(app: App, shown: Display) -> None:
    bus = f"its bus on {app.server.url}, " if app.server else ""
    shown.say("reactor", f"{bus}webhooks on {app.receiver_url}")
    shown.say("page", f"{app.web_url}/ shows all of it live: open it in a browser")


def _route() -> str:
    return f"{scene.HOME}/{scene.NAMESPACE}/{scene.ROUTE}"


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send the logs to a file while the block runs: on the terminal they would disturb the story."""
    with path.open("a", encoding="utf-8") as file:
        lines = start_logging("logfmt", "info", file)
        try:
            yield
        finally:
            lines.close()
            start_logging("logfmt", "info")


def _end_of(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    return "\n  ".join(["The end of the reactor's log:", *lines])
