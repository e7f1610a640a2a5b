"""Real processes of a test's own, which never outlive it: the kernel ends them with the test, whatever ends that."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.forked import Forked

STOP_SECONDS = 60.0
TAIL_LINES = 60
PR_SET_PDEATHSIG = 1


class Child:
    """One process. `async with` starts it and ends it; where the block fails, the last lines of its log are shown."""

    def __init__(
        self, name: str, argv: Sequence[str | Path], folder: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        """`folder`: where it runs and where its log is."""
        self.name = name
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._argv = [str(word) for word in argv]
        self._environment = environment
        self._process: Process | Forked | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:  # a cancellation too: `async with` ends only what it has begun
            self.show()
            await self.kill()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.show()
        await self.stop()

    async def start(self) -> None:
        """Start it, and come back when it is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = await self._begun()
        await self.ready()

    async def _begun(self) -> Process | Forked:
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._argv, cwd=self.folder, env=self._environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=end_with_us(),
            )  # fmt: skip

    async def ready(self) -> None:
        """Come back when it can be used."""

    @property
    def process(self) -> Process | Forked:
        """The process that was started last."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> int:
        """End it as an operator does (SIGTERM), and give its exit code."""
        if not self.running:
            return self._process.returncode or 0 if self._process else 0
        self.process.send_signal(signal.SIGCONT)  # one that was stopped could not hear the next
        self.process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"{self.name} did not end within {STOP_SECONDS:g} s of SIGTERM") from None

    async def kill(self) -> None:
        """End it as a crash does (SIGKILL)."""
        if self.running:
            self.process.kill()
            await self.process.wait()

    def children(self) -> set[int]:
        """The process ids of its children, as the kernel knows them."""
        found: set[int] = set()
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(FileNotFoundError):  # a thread that has ended meanwhile
                found.update(map(int, (task / "children").read_text().split()))
        return found

    def show(self) -> None:
        """Print the end of its log: pytest shows it beside the failure."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()
            if lines:
                print(f"--- {self.name}, the last of {len(lines)} lines in {self.log}:", *lines[-TAIL_LINES:], sep="\n")


def end_with_us() -> Callable[[], None] | None:
    """Give what a child does before it begins, so that it ends with this process; None where that is not possible."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec nothing may be loaded
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
