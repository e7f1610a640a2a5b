"""Writes log lines without ever making the process wait or end: a pipe may be full, closed, or its disk full.

A thread writes; the process only hands lines over. A line that the reader does not take is dropped and counted.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

from reactor.runtime.shortages import SHORTAGES, shortage_in, shortage_of

BYTES_MAX = 8 << 20
"""Most bytes of lines that wait: what comes then is dropped."""
CLOSE_SECONDS = 1.0
"""Seconds at the end for lines that still wait."""
BATCH = 100
"""Most lines that are written at once."""
PAUSE_SECONDS = 0.5
"""Seconds to wait after a write that was refused."""
AGAIN_SECONDS = 10.0
"""One cause that stops everything is logged once in so long, however much fails for it."""

log = logging.getLogger(__name__)


class Lines:
    """Takes lines at any time, at once, and writes them in their order."""

    def __init__(self, stream: TextIO | None, dropped: Callable[[int], object]) -> None:
        """`stream` None: there is no such file; every line is dropped. `dropped` counts those."""
        self._dropped = dropped
        self._stream = stream
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._idle = True
        self._closed = stream is None
        self._lost = 0
        if stream is not None:
            threading.Thread(target=self._write_all, name="log lines", daemon=True).start()
            atexit.register(self.close)

    def put(self, line: str) -> None:
        """Hand a line over. Never waits for the reader."""
        data = f"{line}\n".encode(errors="backslashreplace")
        with self._changed:
            if self._closed or self._bytes + len(data) > BYTES_MAX:
                self._drop()
                return
            self._waiting.append(data)
            self._bytes += len(data)
            self._changed.notify_all()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Wait until all is written, but no longer than that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and self._idle, 0.0 if self._lost else seconds)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH))]
                self._idle = False
            written = self._write(b"".join(taken))
            lost = 0
            with self._changed:
                self._bytes -= sum(map(len, taken))
                if written:
                    lost, self._lost = self._lost, 0
                else:
                    self._drop(len(taken))
            if lost:
                log.warning("%d log lines were dropped: stderr did not take them", lost)
            if not written:
                time.sleep(PAUSE_SECONDS)

    def _write(self, data: bytes) -> bool:
        """False where it was refused: the pipe is closed, the disk is full."""
        try:
            number = self._stream.fileno() if self._stream is not None else -1
        except (io.UnsupportedOperation, ValueError):  # no file: a test's, or one that is closed
            return self._write_text(data)
        try:
            while data:
                data = data[os.write(number, data) :]
        except OSError:
            return False
        return True

    def _write_text(self, data: bytes) -> bool:
        try:
            if self._stream is not None:
                self._stream.write(data.decode())
        except (OSError, ValueError):
            return False
        return True

    def _drop(self, lines: int = 1) -> None:
        self._lost += lines
        self._dropped(lines)


class LineHandler(logging.Handler):
    """Hands formatted records to `Lines`."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines
        self._causes = Causes()

    def emit(self, record: logging.LogRecord) -> None:
        """Format, and hand over."""
        try:
            told = self._causes.instead_of(record)
            if told is not None:
                self._lines.put(self.format(told))
        except Exception as error:  # noqa: BLE001 - a log line must not end what logs it
            self._lines.put(f"level=error logger={record.name} msg=unformattable error={type(error).__name__}")


class Causes:
    """Makes one line of all that fails for want of descriptors, space or memory, once in AGAIN_SECONDS.

    Without it a process that runs out of descriptors writes a traceback for each connection that it cannot take.
    """

    def __init__(self) -> None:
        self._told_at: dict[int, float] = {}
        self._left_out: dict[int, int] = {}

    def instead_of(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """Give the record itself, the one line in its place, or None."""
        number = _cause(record)
        if number is None:
            return record
        if record.created - self._told_at.get(number, -AGAIN_SECONDS) < AGAIN_SECONDS:
            self._left_out[number] = self._left_out.get(number, 0) + 1
            return None
        self._told_at[number], left_out = record.created, self._left_out.pop(number, 0)
        text = f"{SHORTAGES[number]}; {left_out} lines more were left out" if left_out else SHORTAGES[number]
        return logging.LogRecord(record.name, logging.ERROR, record.pathname, record.lineno, text, None, None)


def _cause(record: logging.LogRecord) -> int | None:
    number = shortage_of(record.exc_info[1] if record.exc_info else None)
    if number is not None:
        return number
    return shortage_in(f"{record.getMessage()} {getattr(record, 'reason', '')}")
