"""One health script runs in this process. `scripts.py` starts `python -m reactor.sources.kubernetes.script_worker`.

Line by line: the first one of stdin names language and script, each other one is an object; each is answered by one
line of stdout. It ends with its stdin. The kernel holds the limits, since nothing in the process itself can stop an
engine in the middle of one instruction: CPU time by SIGPROF, memory by RLIMIT_DATA.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from reactor.runtime.errors import SettingsError

CPU_SECONDS = 1.0
"""Seconds of CPU time for one object."""
MEMORY_BYTES = 256 << 20
"""Most bytes of memory of the process, the engine included: RLIMIT_DATA."""
OUT_OF_MEMORY = 77
"""The exit code where Python itself found no memory; an engine in C++ aborts."""


def main() -> int:
    """Judge until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's, meant for the reactor
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asked = json.loads(sys.stdin.buffer.readline())
    _limit()
    try:
        judge = _judge(asked["language"], asked["script"])
    except SettingsError as error:
        _answer({"refused": str(error)})
        return 0
    _answer({})
    for line in sys.stdin.buffer:
        _limit()
        verdict = judge(json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        _answer({"status": verdict.status.value, "detail": verdict.detail[:1000]})
    return 0


def _judge(language: str, script: str) -> Any:
    if language == "lua":
        from reactor.sources.kubernetes.lua_health import LuaHealth

        return LuaHealth(script).judge
    from reactor.sources.kubernetes.cel_health import CelHealth

    return CelHealth(script).judge


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)


def _answer(answer: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
