"""The reactors of a run: real processes that are started, killed, stopped and started again, as a supervisor would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping
from pathlib import Path

from reactor.failpoints import ENVIRONMENT

ROOT = Path(__file__).parents[2]
START_SECONDS = 90.0  # Python with its imports on a machine that is busy with other runs
STOP_SECONDS = 30.0
RESTART_SECONDS = 0.3
LOOK_SECONDS = 0.05
TAIL_BYTES = 4_000


class NotUp(AssertionError):
    """A reactor did not start, or did not do what the fault needed."""


class Member:
    """One reactor."""

    def __init__(self, config: Path, environment: Mapping[str, str] | None = None) -> None:
        self.config = config
        self.name = config.stem
        self.starts = 0
        self.wanted = True
        """Whether it is started again when it ends."""
        self._environment = dict(environment or {})
        self._process: Process | None = None
        self._log = config.with_suffix(".log")
        self._read_from = 0

    @property
    def process(self) -> Process:
        """The process that runs, or ran last."""
        if self._process is None:
            raise NotUp(f"{self.name} was never started")
        return self._process

    async def start(self, failpoint: str = "") -> None:
        """Start it, with a failpoint or without, and come back when it works."""
        await self.launch(failpoint)
        await self.until_up()

    async def launch(self, failpoint: str = "") -> None:
        """Start it and do not wait."""
        environment = {**os.environ, **self._environment, "PYTHONUNBUFFERED": "1"}
        environment.pop(ENVIRONMENT, None)
        if failpoint:
            environment[ENVIRONMENT] = failpoint
        self.wanted = True
        self.starts += 1
        with self._log.open("ab") as log:
            self._read_from = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.chaos.member", "--config", str(self.config),
                cwd=ROOT, env=environment, stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    async def until_up(self) -> None:
        """Wait until it says that it runs. Raises NotUp."""
        said = f"reactor {self.name}:".encode()
        await self._until(lambda: said in self._log.read_bytes()[self._read_from :], START_SECONDS, "did not start")

    async def until_dead(self, within: float) -> bool:
        """Wait until it has ended; False where it has not."""
        try:
            async with asyncio.timeout(within):
                await self.process.wait()
        except TimeoutError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self.process.returncode is None:
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it as a crash would."""
        self.wanted = False
        self.signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> None:
        """End it in an orderly way; by force, and with an error, where it does not end in time."""
        self.wanted = False
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if not await self.until_dead(STOP_SECONDS):
            await self.kill()
            raise NotUp(f"{self.name} did not stop within {STOP_SECONDS:g} s:\n{self.tail()}")

    async def keep(self) -> None:
        """Start it again whenever it ends by itself, for ever."""
        while True:
            await self.process.wait()
            await asyncio.sleep(RESTART_SECONDS)
            if self.wanted and self.process.returncode is not None:
                await self.launch()
            while not self.wanted:  # noqa: ASYNC110 - rare, and a test
                await asyncio.sleep(LOOK_SECONDS)

    def tail(self) -> str:
        """The last of what it said."""
        return self._log.read_bytes()[-TAIL_BYTES:].decode(errors="replace")

    async def _until(self, holds: Callable[[], bool], within: float, else_: str) -> None:
        try:
            async with asyncio.timeout(within):
                while not holds():
                    if self.process.returncode is not None:
                        raise NotUp(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            raise NotUp(f"{self.name} {else_} within {within:g} s:\n{self.tail()}") from error
