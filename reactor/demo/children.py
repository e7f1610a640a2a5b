"""Processes of the demo's world: Python modules of ours, which never outlive the demo."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import reactor
from reactor.demo.errors import ChildFailed

START_SECONDS = 60.0  # Python with its imports, on a machine that is busy with other things
_TAIL_BYTES = 1_000
_OURS = Path(reactor.__file__).parents[1]


class Child:
    """A running module."""

    def __init__(self, name: str, process: Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    async def line(self) -> str:
        """Give the next line that it prints. Raises ChildFailed when it has ended."""
        if self._process.stdout is None:
            raise ChildFailed(f"{self.name} was started without a pipe to read")
        line = await self._process.stdout.readline()
        if not line:
            said = self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()
            raise ChildFailed(f"{self.name} ended with code {await self._process.wait()}:\n{said}")
        return line.decode().rstrip()

    async def first_line(self) -> str:
        """Give the line that says that it runs. Raises ChildFailed where it does not come in time."""
        try:
            async with asyncio.timeout(START_SECONDS):
                return await self.line()
        except TimeoutError as error:
            raise ChildFailed(f"{self.name} did not start within {START_SECONDS:g} s") from error


@asynccontextmanager
async def child(name: str, module: str, *arguments: str, log: Path) -> AsyncIterator[Child]:
    """Run `python -m module` while the block runs; what it says on stderr goes to the log."""
    with log.open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *arguments, "--parent", str(os.getpid()),
            stdin=DEVNULL, stdout=PIPE, stderr=said,
            cwd=_OURS,  # from here -m finds this very code, whatever the current folder is
            process_group=0,  # a Ctrl-C in the terminal is for us: the world ends after the reactor has
        )  # fmt: skip
    try:
        yield Child(name, process, log)
    finally:
        if process.returncode is None:
            process.kill()  # it has nothing to put away, so nothing is waited for that could hang
        await process.wait()
