"""Health scripts run in processes of their own: one for each source, ended and started again when one takes too much.

What a script does to its process (time, memory, a crash of its engine) reaches neither the event loop nor other
sources. The object in hand is Unknown with the reason, and the next one is judged by a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

from bus.messages import Health
from reactor.clients.changes import key_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError, Retryable, SettingsError
from reactor.sources.kubernetes.script_worker import CPU_SECONDS, MEMORY_BYTES, OUT_OF_MEMORY
from reactor.sources.kubernetes.workload_health import HealthVerdict

ANSWER_SECONDS = 10.0
"""Seconds of real time for one object: on a crowded machine a second of CPU time takes longer."""
START_SECONDS = 30.0
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
"""Environment variables that the process gets of ours: a script has no business with secrets."""

log = logging.getLogger(__name__)


class Ended(ReactorError):
    """The process has ended without an answer: says why."""


class Script:
    """One script of one source. `async with Script(…) as script: await script.judge(object)`."""

    def __init__(self, source: str, language: str, text: str) -> None:
        self._source = source
        self._language = language
        self._text = text
        self._process: Process | None = None
        self._turn = asyncio.Lock()  # the kinds of one source share the process

    async def __aenter__(self) -> Script:
        """Start it. Raises SettingsError where the script cannot work, Retryable where no process can be started."""
        try:
            self._process = await self._start()
        except Ended as error:
            raise SettingsError(f"source {self._source}: health.{self._language}: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """End its process."""
        await self._end()

    async def judge(self, found: JsonObject) -> HealthVerdict:
        """Give what the script says of an object; anything but true or false is Unknown, an end by a limit too."""
        async with self._turn:
            try:
                if self._process is None:
                    self._process = await self._start()
                answer = await self._ask(self._process, found, ANSWER_SECONDS)
                return HealthVerdict(Health(answer["status"]), answer["detail"])
            except (Ended, Retryable, SettingsError) as error:
                why = f"health.{self._language}: {error}"
            except BaseException:  # a cancellation: the next answer would be this object's
                await self._end()
                raise
            await self._end()
        telemetry.source_errors.labels(self._source, "ScriptEnded").inc()
        key = key_of(found)
        where = f"{key.namespace}/{key.name}" if key is not None else ""
        log.warning("a health script was ended", extra={"source": self._source, "object": where, "reason": why})
        return HealthVerdict(Health.UNKNOWN, why)

    async def _start(self) -> Process:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        command = (sys.executable, "-m", "reactor.sources.kubernetes.script_worker")
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
        except OSError as error:
            raise Retryable(f"no process for a health script: {error}") from error
        try:
            first = {"language": self._language, "script": self._text}
            answer = await self._ask(process, first, START_SECONDS)
        except BaseException:  # a cancellation too: no other code knows this process
            await _kill(process)
            raise
        if "refused" in answer:
            await _kill(process)
            raise SettingsError(f"source {self._source}: {answer['refused']}")
        return process

    async def _ask(self, process: Process, question: JsonObject, seconds: float) -> dict[str, str]:
        assert process.stdin is not None  # noqa: S101 - PIPE
        assert process.stdout is not None  # noqa: S101 - PIPE
        try:
            async with asyncio.timeout(seconds):
                process.stdin.write(json.dumps(question).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
            answer: dict[str, str] = json.loads(line)
        except TimeoutError as error:
            raise Ended(f"gave no answer within {seconds:g} s") from error
        except RecursionError as error:
            raise Ended("the object is nested too deep") from error
        except (OSError, ValueError) as error:  # it has ended
            raise Ended(_why(await _wait_for_end(process))) from error
        return answer

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await _kill(process)


async def _wait_for_end(process: Process) -> int:
    """Give how a process has ended that said its last word."""
    try:
        async with asyncio.timeout(0.5):
            return await process.wait()
    except TimeoutError:
        return await _kill(process)


async def _kill(process: Process) -> int:
    """End it at once: it holds nothing."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return await process.wait()


def _why(code: int) -> str:
    if code == -signal.SIGPROF:
        return f"took more than {CPU_SECONDS:g} s of CPU time"
    if code in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV):
        return f"took more than {MEMORY_BYTES >> 20} MiB, or crashed (exit {code})"
    return f"its process ended (exit {code})"
