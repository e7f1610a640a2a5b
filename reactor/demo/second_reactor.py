"""A second reactor on the demo's bus, in a process of its own, to be killed."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from reactor.demo.children import Child, child
from reactor.demo.demo_world import read_settings
from reactor.demo.lifeline import end_with
from reactor.runtime.telemetry import start_logging

NAME = "demo-2"


class SecondReactor:
    """Process of the second reactor, as the demo sees it."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._stack = AsyncExitStack()
        self._running: Child | None = None
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Start it where it does not run. Raises ChildFailed."""
        async with self._changing:
            if self._running is None:
                log = self._config.with_name(f"{NAME}.log")
                started = child(NAME, "reactor.demo.second_reactor", "--config", str(self._config), log=log)
                running = await self._stack.enter_async_context(started)
                try:
                    await running.first_line()
                except BaseException:  # a cancellation too: what has started is ended, and the error goes on
                    await self._stack.aclose()  # or the next start would find it running
                    raise
                self._running = running

    async def kill(self) -> None:
        """End it as a crash does: it puts nothing away."""
        async with self._changing:
            self._running = None
            await self._stack.aclose()


async def _run(config: Path) -> None:
    from reactor.process.app import ALL_ROLES, App
    from reactor.process.session import address

    settings = read_settings(config)
    bus = settings.bus.model_copy(update={"url": address(settings.bus)})
    async with App(settings.model_copy(update={"name": NAME, "bus": bus}), ALL_ROLES) as app:
        print("runs", flush=True)  # noqa: T201 - the process that started us waits for it
        await app.failed()


def main(argv: Sequence[str] | None = None) -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser(prog="python -m reactor.demo.second_reactor", description="A second reactor.")
    parser.add_argument("--config", required=True, type=Path, help="the demo's settings file")
    parser.add_argument("--parent", type=int, help="end when this process ends, which must be the one that starts us")
    given = parser.parse_args(argv)
    if given.parent is not None:
        end_with(given.parent)
    start_logging("logfmt", "info")
    asyncio.run(_run(given.config))


if __name__ == "__main__":
    main()
