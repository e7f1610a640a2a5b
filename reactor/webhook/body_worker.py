"""The process that reads large bodies: `python -m reactor.webhook.body_worker MEMORY_BYTES`, started by `bodies.py`.

The JSON parser lets no other thread run while it works, and small JSON can become large objects. Here neither holds up
the event loop nor takes its memory. stdin: a line of JSON and the body, again and again; stdout: a line of JSON and the
messages. It ends with its stdin. The kernel holds the limits: CPU time by SIGPROF, memory by RLIMIT_DATA.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from datetime import datetime

from reactor.webhook.body import BadBody
from reactor.webhook.taking import take

CPU_SECONDS = 10.0
"""Seconds of CPU time for one body. 32 MiB of real alerts take one to two."""
OUT_OF_MEMORY = 77
"""The exit code where Python itself found no memory."""


def main() -> None:
    """Read bodies until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's, meant for the reactor
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        raw = sys.stdin.buffer.read(asked["bytes"])
        if len(raw) < asked["bytes"]:
            return
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        _answer(raw, asked)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(raw: bytes, asked: dict[str, str | int]) -> None:
    at = datetime.fromisoformat(str(asked["at"]))
    try:
        taken = take(raw, source=str(asked["source"]), at=at, alerts_max=int(asked["alertsMax"]))
    except BadBody as error:
        _say({"refused": [error.code, str(error), error.limit]})
        return
    messages = [[one.id, len(one.body), size] for one, size in zip(taken.messages, taken.sizes, strict=True)]
    counts = {"alerts": taken.alerts, "quarantined": taken.quarantined, "truncated": taken.truncated}
    _say({**counts, "reasons": taken.reasons, "messages": messages}, *(one.body for one in taken.messages))


def _say(head: dict[str, object], *bodies: bytes) -> None:
    out = sys.stdout.buffer
    out.write(json.dumps(head).encode() + b"\n")
    for one in bodies:
        out.write(one)
    out.flush()


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException as error:  # what pydantic's parser, in Rust, makes of an allocation that Python refused
        if type(error).__name__ == "PanicException":
            os._exit(OUT_OF_MEMORY)
        raise
