"""Reactors that are forked from a process which has imported everything: a start then takes a fifth of the work.

What is forked is a process like any other: its own memory, connections, descriptors, signals and exit code. It ends
with the process that forks, and that ends with the test run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from reactor.runtime.failpoints import ENVIRONMENT

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.e2e.preloaded"])


class Forked:
    """Process with the parts of `asyncio.subprocess.Process` that tests need."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    @property
    def returncode(self) -> int | None:
        """None while it runs; -9 where signal 9 has ended it."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """To one that has ended: nothing."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Come back when it has ended, with its exit code."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self.returncode is not None
        return self.returncode


async def fork(
    program: Callable[[], None], words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path,
    *, errors: Path | None = None,
) -> Forked:  # fmt: skip
    """Start a program, which is a function of a module, in a folder.

    `log`: where both its channels go; `errors`: where stderr goes instead.
    """
    for file in (log, errors or log):
        file.touch()  # it can be read from now on
    process = FORKS.Process(target=_be, args=(program, list(words), folder, dict(environment), log, errors or log))
    await asyncio.to_thread(process.start)  # the first one waits for all the imports
    return Forked(process)


def _be(
    program: Callable[[], None], words: list[str], folder: Path, environment: dict[str, str], log: Path, errors: Path
) -> None:
    """The forked process becomes the program."""
    from tests.chaos import member  # with all that a reactor imports; it is there in what is forked

    member.end_with_parent()
    member.arm(environment.get(ENVIRONMENT, ""))  # it read another environment as it was imported
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with open(os.devnull) as nothing, log.open("ab") as said, errors.open("ab") as wrong:  # noqa: PTH123 - a descriptor, not a path
        os.dup2(nothing.fileno(), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(wrong.fileno(), 2)
    sys.argv = [program.__module__, *words]
    program()
