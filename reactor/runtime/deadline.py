"""A stop ends in time whatever hangs: a thread that the event loop cannot hold up ends the process at last.

What an orderly stop gives back (partitions, sources) others take over after a lease then, as after a crash.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

STOP_SECONDS = 4.0
"""An orderly stop takes well under a second where nothing hangs."""
GAVE_UP = 1
"""The exit code."""

log = logging.getLogger(__name__)


class Deadline:
    """Ends the process after STOP_SECONDS, unless it has ended by then."""

    def __init__(self, last_words: Callable[[], None]) -> None:
        """`last_words`: writes what is still to be written; must not take long."""
        self._last_words = last_words

    def begin(self) -> None:
        """Begin to count from now."""
        timer = threading.Timer(STOP_SECONDS, self._give_up)
        timer.daemon = True
        timer.start()

    def _give_up(self) -> None:
        log.error(
            "the stop took more than %g s, and is cut short: others take over after a lease", STOP_SECONDS,
            extra={"at": _at()},
        )  # fmt: skip
        end_children()
        self._last_words()
        os._exit(GAVE_UP)


def end_children() -> None:
    """Leave no process behind: a program that gives credentials may hang without end."""
    for child in children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def children() -> list[int]:
    """Give the processes that this one has started and that still run; none where the system does not tell."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def _at() -> str:
    """Stack of the main thread, innermost frame first, at most five: in the event loop, or in what holds it up."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - the documented way
    names: list[str] = []
    while frame is not None and len(names) < 5:
        names.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names)
