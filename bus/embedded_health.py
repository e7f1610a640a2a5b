"""Keeps the embedded nats-server running and storing: one that met a full disk stores nothing more until it is
restarted.

nats-server gives up a stream at its first write error, and goes on answering everything else (2.12 turns JetStream off,
2.14 and later only the stream). Only `/healthz` says so. It is restarted once there is room again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import deque
from pathlib import Path
from urllib.parse import urlsplit

from bus.embedded import EmbeddedServer
from bus.errors import EmbeddedError

LOOK_SECONDS = 1.0
WELL_LOOK_SECONDS = 4.0
"""While it stores: the server goes through all its streams and consumers for one answer."""
ANSWER_SECONDS = 2.0
ROOM_BYTES = 8 << 20
"""A file of this size must fit into the store before the server is restarted."""
DOUBT_LOOKS = 3
"""Failed looks in a row that count as trouble: a server that starts is not healthy at once."""
PAUSE_MAX = 60.0
ENDS_MAX = 3
ENDS_SECONDS = 60.0
"""A server that ends ENDS_MAX times within ENDS_SECONDS cannot be helped by being started again."""

FIX = "free space there: nats-server is restarted by itself then"

_CAUSES = {
    "no space left on device": "the bus's disk is full",
    "disk quota exceeded": "the bus's disk quota is used up",
    "read-only file system": "the bus's disk has become read-only",
    "permission denied": "the bus may not write to its disk",
    "input/output error": "the bus's disk fails",
    "too many open files": "the bus has no file descriptors left",
    "insufficient storage": "the bus's storage limit is reached",
    "insufficient resources": "the bus's storage limit is reached",
}

log = logging.getLogger(__name__)


def cause(error: str) -> str:
    """Give the cause of a failed write in an operator's words; the error itself where it is another one."""
    return next((words for text, words in _CAUSES.items() if text in error.lower()), error)


class EmbeddedHealth:
    """Watches one embedded server while `run` runs."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self.trouble = ""
        """Reason why the server stores nothing; empty: it stores."""

    async def run(self) -> None:
        """Look until cancelled. Raises EmbeddedError, OSError where the server does not start again."""
        looks, pause, not_before = 0, LOOK_SECONDS, 0.0
        clock = asyncio.get_running_loop().time
        while True:
            error = await self.look()
            looks = looks + 1 if error else 0
            if not error:
                if self.trouble:
                    log.info("the bus stores again", extra={"store": str(self._server.folder)})
                self.trouble, pause = "", LOOK_SECONDS
            elif looks >= DOUBT_LOOKS:
                self._report(error)
                if clock() >= not_before and await asyncio.to_thread(has_room, self._server.folder):
                    log.warning("the embedded nats-server is restarted", extra={"reason": self.trouble})
                    await self._server.restart()
                    pause = min(pause * 2, PAUSE_MAX)
                    looks, not_before = 0, clock() + pause
                    continue
            await asyncio.sleep(LOOK_SECONDS if error else WELL_LOOK_SECONDS)

    async def look(self) -> str:
        """Give what `/healthz` complains about; empty: nothing, or there is no answer, which its end explains."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await _healthz(self._server.monitoring)
        except (OSError, TimeoutError, ValueError) as error:
            log.debug("no answer from /healthz: %r", error)
            return ""

    def _report(self, error: str) -> None:
        words = cause(error)
        if words != self.trouble:
            log.error("%s", words, extra={"store": str(self._server.folder), "fix": FIX})
        self.trouble = words


async def keep_up(server: EmbeddedServer) -> str:
    """Start the server again each time that it ends, as when the kernel kills it for its memory. Gives the reason why
    that cannot go on: it does not start, or ends too often."""
    clock = asyncio.get_running_loop().time
    ends: deque[float] = deque(maxlen=ENDS_MAX)
    while True:
        code = await server.exited()
        ends.append(clock())
        if len(ends) == ENDS_MAX and ends[-1] - ends[0] <= ENDS_SECONDS:
            return (
                f"nats-server ended {ENDS_MAX} times within {ENDS_SECONDS:.0f} s (exit code {code}, see {server.log})"
            )
        log.error(
            "the embedded nats-server has ended, and is started again",
            extra={"exit_code": code, "log": str(server.log)},
        )
        try:
            await server.restart()
        except EmbeddedError as error:
            return str(error)


def has_room(folder: Path) -> bool:
    """True if a file of ROOM_BYTES can be written there."""
    file = folder / "room"
    try:
        with file.open("wb", buffering=0) as room:
            for _ in range(ROOM_BYTES >> 20):
                if room.write(bytes(1 << 20)) != 1 << 20:
                    return False
            os.fsync(room.fileno())
    except OSError as error:
        log.debug("no room in %s: %s", folder, error)
        return False
    finally:
        file.unlink(missing_ok=True)
    return True


async def _healthz(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {parts.path}/healthz HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        answer = await reader.read(-1)
    finally:
        writer.close()
    said = json.loads(answer.partition(b"\r\n\r\n")[2])
    return "" if said.get("status") == "ok" else str(said.get("error") or said.get("status"))
