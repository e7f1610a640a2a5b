"""The reactors of a run: real processes that are started, killed, stopped and started again, as a supervisor would."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.chaos.member import ORDERS
from tests.chaos.nursery import Nursery, Order

START_SECONDS = 90.0  # on a machine that is busy with other runs
STOP_SECONDS = 30.0
RESTART_SECONDS = 0.3
LOOK_SECONDS = 0.05
TAIL_BYTES = 4_000


class NotUp(AssertionError):
    """A reactor did not start, or did not do what the fault needed."""


class Life:
    """One process, from its birth to its end. By descriptor: a process id may be another's by now."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = asyncio.Event()
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._ended.set()  # it has ended already
        else:
            asyncio.get_running_loop().add_reader(self._descriptor, self._end)

    @property
    def over(self) -> bool:
        """True if it has ended."""
        return self._ended.is_set()

    async def wait(self) -> None:
        """Wait until it has ended."""
        await self._ended.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if not self.over:
            with suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(self._descriptor, number)

    def _end(self) -> None:
        self._ended.set()
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)


class Member:
    """One reactor."""

    def __init__(
        self, config: Path, nursery: Nursery, *, environment: Mapping[str, str] | None = None, address: str = ""
    ) -> None:
        """`address`: in a network namespace of its own."""
        self.config = config
        self.name = config.stem
        self.starts = 0
        self.wanted = True
        """True if it is started again when it ends."""
        self.link = ""
        """Our end of its cable, where it has a namespace of its own."""
        self.nursery = nursery
        """Nursery that forks it at its next start, and so the code that it runs."""
        self._environment = dict(environment or {})
        self._address = address
        self._life: Life | None = None
        self._starting = asyncio.Lock()
        self._log = config.with_suffix(".log")
        self._read_from = 0

    @property
    def life(self) -> Life:
        """The process that runs, or ran last."""
        if self._life is None:
            raise NotUp(f"{self.name} was never started")
        return self._life

    async def start(self, failpoint: str = "") -> None:
        """Start it, with a failpoint or without, and come back when it works."""
        await self.launch(failpoint)
        await self.until_up()

    async def launch(self, failpoint: str = "") -> None:
        """Start it and do not wait."""
        async with self._starting:  # a supervisor that sees the last one dead must not start another beside it
            self.wanted = True
            await self._launch(failpoint)

    async def _launch(self, failpoint: str = "") -> None:
        self.starts += 1
        self._read_from = self._log.stat().st_size if self._log.exists() else 0
        order = Order(str(self.config), str(self._log), failpoint, self._environment, self._address)
        birth = await self.nursery.born(order)
        self._life, self.link = Life(birth.pid), birth.link

    def arm(self, failpoint: str) -> None:
        """Let it happen in the process that runs."""
        self.config.with_suffix(ORDERS).write_text(failpoint, "utf-8")
        self.life.signal(signal.SIGUSR1)

    async def until_up(self) -> None:
        """Wait until it says that it runs; one that finds no bus ends, and is started again. Raises NotUp."""
        said = f"reactor {self.name}:".encode()
        try:
            async with asyncio.timeout(START_SECONDS):
                while not self._log.exists() or said not in self._log.read_bytes()[self._read_from :]:
                    await self._again()
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            raise NotUp(f"{self.name} did not start within {START_SECONDS:g} s:\n{self.tail()}") from error

    async def until_dead(self, within: float) -> bool:
        """Wait until it has ended; False where it has not."""
        try:
            async with asyncio.timeout(within):
                await self.life.wait()
        except TimeoutError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        self.life.signal(number)

    async def kill(self) -> None:
        """End it as a crash would."""
        self.wanted = False
        self.signal(signal.SIGKILL)
        await self.life.wait()

    async def stop(self) -> None:
        """End it in an orderly way; by force, and with an error, where it does not end in time."""
        self.wanted = False
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if not await self.until_dead(STOP_SECONDS):
            await self.kill()
            raise NotUp(f"{self.name} did not stop within {STOP_SECONDS:g} s:\n{self.tail()}")

    async def keep(self) -> None:
        """Start it again whenever it ends by itself, without end."""
        while True:
            await self.life.wait()
            await asyncio.sleep(RESTART_SECONDS)
            await self._again()
            while not self.wanted:
                await asyncio.sleep(LOOK_SECONDS)

    async def _again(self) -> None:
        async with self._starting:
            if self.wanted and self.life.over:
                await self._launch()

    def tail(self) -> str:
        """The last of what it said."""
        return self._log.read_bytes()[-TAIL_BYTES:].decode(errors="replace")
