"""Logging never makes a process wait, and never ends it: a full pipe, a closed one, a full disk, no descriptors."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reactor.runtime import telemetry
from reactor.runtime.lines import Causes, Lines
from reactor.runtime.shortages import descriptors_missing
from tests import disk

LINES, LINE_BYTES, WAITING_BYTES = 8_000, 200, 1 << 20
"""Lines, their least length, and the most bytes that wait: less than a process really keeps, as such lines cost a
second of a processor for each MiB."""
FLOOD = f"""
import logging, sys, time
from reactor.runtime import lines as runtime_lines, telemetry
runtime_lines.BYTES_MAX = {WAITING_BYTES}
lines = telemetry.start_logging("logfmt", "info")
began = time.monotonic()
for number in range({LINES}):
    logging.getLogger("flood").info("line %d %s", number, "x " * {LINE_BYTES // 2})
took = time.monotonic() - began
print(f"{{took:.1f}} {{int(telemetry.log_lines_dropped._value.get())}}", flush=True)
"""


def flooded(stderr: int) -> tuple[float, int]:
    """Log LINES lines to this file, and give how long that took, and how many were dropped. Fails if it hangs."""
    done = subprocess.run(
        [sys.executable, "-c", FLOOD], stdout=subprocess.PIPE, stderr=stderr, check=True, timeout=60, text=True
    )
    took, dropped = done.stdout.split()
    return float(took), int(dropped)


def test_a_log_pipe_that_is_not_emptied_stops_nothing() -> None:
    reader, writer = os.pipe()
    try:
        _, dropped = flooded(writer)
    finally:
        os.close(reader)
        os.close(writer)
    assert dropped * LINE_BYTES > LINES * LINE_BYTES - WAITING_BYTES > 0


def test_a_log_pipe_that_is_closed_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        flooded(writer)
    finally:
        os.close(writer)


@pytest.mark.skipif(bool(disk.lacks()), reason=disk.lacks())
def test_a_log_file_on_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    with disk.small(tmp_path / "small") as folder:
        with (folder / "log").open("wb") as file:
            disk.fill(folder / "filler")
            flooded(file.fileno())
        assert (folder / "log").stat().st_size == 0


def test_without_a_stderr_nothing_is_written_and_nothing_fails() -> None:
    lines = Lines(None, telemetry.log_lines_dropped.inc)
    lines.put("x")
    lines.close()


def test_lines_come_out_in_order_and_what_was_dropped_is_counted_when_they_come_out_again() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        lines = Lines(stream, telemetry.log_lines_dropped.inc)
        for number in range(100):
            lines.put(str(number))
        lines.close()
        assert os.read(reader, 1 << 16).decode().split() == [str(number) for number in range(100)]
    os.close(reader)


def failed(error: OSError) -> logging.LogRecord:
    outer = RuntimeError("cannot connect")
    outer.__cause__ = error
    return logging.LogRecord("asyncio", logging.ERROR, __file__, 1, "it failed", None, (RuntimeError, outer, None))


def test_a_thousand_failures_for_want_of_descriptors_are_one_line_in_ten_seconds() -> None:
    causes = Causes()
    records = [failed(OSError(errno.EMFILE, "Too many open files")) for _ in range(1_000)]
    told = [one for record in records if (one := causes.instead_of(record))]
    assert [one.getMessage().partition(":")[0] for one in told] == ["this process has no file descriptors left"]
    assert not told[0].exc_info
    later = failed(OSError(errno.EMFILE, "Too many open files"))
    later.created += 11
    again = causes.instead_of(later)
    assert again is not None
    assert again.getMessage().endswith("999 lines more were left out")


def test_other_failures_are_told_in_full() -> None:
    record = failed(OSError(errno.ECONNREFUSED, "refused"))
    assert Causes().instead_of(record) is record


def test_what_names_a_lack_of_descriptors_only_in_its_text_is_that_line_too() -> None:
    causes = Causes()
    record = logging.LogRecord("watch", logging.WARNING, __file__, 1, "cannot watch, trying again", None, None)
    record.reason = "east: GET /version got no answer: Cannot connect to host [Too many open files]"
    told = causes.instead_of(record)
    assert told is not None
    assert told.getMessage().startswith("this process has no file descriptors left")
    other = logging.LogRecord("bus", logging.ERROR, __file__, 1, "the bus: too many open files", None, None)
    assert causes.instead_of(other) is other  # a server's own, in the words of Go


def test_a_lack_of_descriptors_is_found_behind_what_a_client_raises() -> None:
    outer = ExceptionGroup("all addresses", [ValueError("first"), OSError(errno.EMFILE, "Too many open files")])
    failed = ConnectionError("cannot connect")
    failed.__cause__ = outer
    found = descriptors_missing(failed)
    assert found is not None
    assert found.errno == errno.EMFILE
    assert descriptors_missing(ConnectionRefusedError(errno.ECONNREFUSED, "refused")) is None
