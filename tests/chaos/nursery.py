"""Fork server of reactors: one process that has imported everything, and forks, so that a start costs a tenth.

What is forked is a process like any other: its own memory, connections and signals. Only where a library has to be
loaded before Python itself (libfaketime) is it executed again. One nursery belongs to one run and ends with it, and so
do the reactors.

It is told and answers in lines of JSON: an Order on stdin, a Birth on stdout.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = Path(os.environ.get("CHAOS_CODE", ROOT))
"""Folder with the code of the reactors; by default this checkout. To test an older commit, name its worktree."""


@dataclass(frozen=True, slots=True)
class Order:
    """A reactor that is wanted."""

    config: str
    log: str
    failpoint: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Not empty: the program is executed again with these."""
    address: str = ""
    """Not empty: it lives in a network namespace of its own, with this address."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A reactor that lives."""

    pid: int
    link: str = ""
    """Our end of its cable, where it lives in a namespace of its own."""


class Nursery:
    """The harness's side."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def born(self, order: Order) -> Birth:
        """Let a reactor be started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(json.dumps(dataclasses.asdict(order)).encode() + b"\n")
            await self._process.stdin.drain()
            answer = await self._process.stdout.readline()
        assert answer, "the nursery has ended"
        return Birth(**json.loads(answer))


@asynccontextmanager
async def nursery(code: Path = CODE) -> AsyncIterator[Nursery]:
    """Open one; it ends, and every reactor with it, with the block. `code`: the folder with its reactors' code."""
    command = [sys.executable, "-m", "tests.chaos.nursery"]
    process = await asyncio.create_subprocess_exec(*command, cwd=code, stdin=PIPE, stdout=PIPE, process_group=0)
    try:
        yield Nursery(process)
    finally:
        process.kill()
        await process.wait()


def main() -> None:
    """Serve orders until stdin ends."""
    from tests.chaos import member, namespaces

    member.end_with_parent()
    member.load_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # this process does not wait for them: they leave nothing behind
    gc.freeze()  # what is shared with the forked stays shared
    for line in sys.stdin:
        order = Order(**json.loads(line))
        with namespaces.apart(order.address) as link:
            pid = os.fork()
            if not pid:
                break
        sys.stdout.write(json.dumps(dataclasses.asdict(Birth(pid, link))) + "\n")
        sys.stdout.flush()
    else:
        return
    _be(order)


def _be(order: Order) -> None:
    """The forked one becomes a reactor."""
    from tests.chaos import member

    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    member.end_with_parent()
    with open(os.devnull) as nothing, open(order.log, "ab") as log:  # noqa: PTH123 - descriptors, not paths
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if order.environment:
        environment = {**os.environ, **order.environment, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "tests.chaos.member", order.config, order.failpoint]
        os.execve(sys.executable, command, environment)  # noqa: S606 - no shell
    member.main(order.config, order.failpoint)


if __name__ == "__main__":
    main()
