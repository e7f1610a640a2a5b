"""Large bodies are read in a process of their own, one after the other, each source in its turn.

What a body does to that process reaches neither the event loop nor other posts: it is ended, its body is refused, and
the next one is read by a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import defaultdict
from datetime import datetime

from bus import subjects
from bus.port import Outgoing
from reactor.runtime.errors import Retryable
from reactor.webhook.body import BadBody
from reactor.webhook.body_worker import CPU_SECONDS, OUT_OF_MEMORY
from reactor.webhook.taking import TakenBody, take

INLINE_BYTES = 256 << 10
"""Smaller bodies are read at once: some 10 ms."""
ANSWER_SECONDS = 30.0
"""Seconds of real time, the start of the process included: on a crowded machine a second of CPU time takes longer."""
END_SECONDS = 0.5
LINE_BYTES = 1 << 20
"""The longest line of an answer."""
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")


class Bodies:
    """Reads bodies. `close` ends its process."""

    def __init__(self, memory_bytes: int) -> None:
        """`memory_bytes`: of the process, Python included."""
        self._memory_bytes = memory_bytes
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One body of each source waits for its turn, the others wait for that one."""

    async def take(self, raw: bytes, *, source: str, at: datetime, alerts_max: int) -> TakenBody:
        """Read a body. Raises BadBody, and Retryable where no process can be started or it does not answer in time."""
        if len(raw) <= INLINE_BYTES:
            return take(raw, source=source, at=at, alerts_max=alerts_max)
        head = {"bytes": len(raw), "source": source, "at": at.isoformat(), "alertsMax": alerts_max}
        async with self._turns[source], self._turn:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._ask(json.dumps(head).encode() + b"\n", raw, source)
            except TimeoutError as error:
                await self.close()
                raise Retryable(f"the body was not read within {ANSWER_SECONDS:g} s") from error
            except BadBody:
                raise
            except (OSError, EOFError, ValueError) as error:
                raise _ended(await self._exit_code(), self._memory_bytes) from error
            except BaseException:  # a cancellation: the next answer would be this body's
                await self.close()
                raise

    async def close(self) -> None:
        """End the process at once: it holds nothing."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _exit_code(self) -> int:
        """Give how the process has ended that said its last word."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                return await process.wait()
        self._process = process
        await self.close()
        return 0

    async def _ask(self, head: bytes, raw: bytes, source: str) -> TakenBody:
        if self._process is None:
            self._process = await self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - PIPE
        assert stdout is not None  # noqa: S101 - PIPE
        stdin.write(head)
        stdin.write(raw)
        await stdin.drain()
        answer = json.loads(await stdout.readline())
        if "refused" in answer:
            code, message, limit = answer["refused"]
            raise BadBody(code, message, limit=limit)
        subject = subjects.webhook(source)
        messages = [Outgoing(subject, await stdout.readexactly(length), id_) for id_, length, _ in answer["messages"]]
        sizes = tuple(size for _, _, size in answer["messages"])
        counts = answer["alerts"], answer["quarantined"]
        return TakenBody(*counts, tuple(answer["reasons"]), answer["truncated"], messages, sizes)

    async def _start(self) -> Process:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        command = (sys.executable, "-m", "reactor.webhook.body_worker", str(self._memory_bytes))
        try:
            return await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, limit=LINE_BYTES
            )
        except OSError as error:
            raise Retryable(f"no process for large bodies: {error}") from error


def _ended(code: int, memory_bytes: int) -> BadBody | Retryable:
    if code not in (-signal.SIGPROF, OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGSEGV):
        return Retryable(f"the process that reads large bodies has ended (exit {code})")
    text = f"more than {memory_bytes >> 20} MiB of memory or {CPU_SECONDS:g} s of CPU time are needed to read it"
    return BadBody(413, f"body: {text}", limit="bodyWork")
