"""The reactors of a run: real processes that are started, killed, stopped and started again, as a supervisor would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
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
        self.environment = dict(environment or {})
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
        environment = {**os.environ, **self.environment, "PYTHONUNBUFFERED": "1"}
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
        """Wait until it says that it runs; one that finds no bus ends, and is started again. Raises NotUp."""
        said = f"reactor {self.name}:".encode()
        try:
            async with asyncio.timeout(START_SECONDS):
                while said not in self._log.read_bytes()[self._read_from :]:
                    if self.process.returncode is not None:
                        await self.launch()
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            raise NotUp(f"{self.name} did not start within {START_SECONDS:g} s:\n{self.tail()}") from error

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
            while not self.wanted:
                await asyncio.sleep(LOOK_SECONDS)

    def tail(self) -> str:
        """The last of what it said."""
        return self._log.read_bytes()[-TAIL_BYTES:].decode(errors="replace")
