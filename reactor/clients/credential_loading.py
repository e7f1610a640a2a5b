"""Reading a cluster's credentials in a thread of their own: its files may lie on a network, and parsing takes time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from reactor.runtime.threads import Threads

REST_TIMES = 10.0
"""Credentials that are refused are read again after so many times of what the last reading took: a program that gives
them is expensive, a file is not."""
REST_SECONDS_MIN = 1.0
REST_SECONDS_MAX = 10.0

T = TypeVar("T")


class _QuietLoop(asyncio.SelectorEventLoop):
    """An event loop. One that could not be made, as no file descriptor was left, raises that and prints nothing."""

    _complete = False

    def __init__(self) -> None:
        super().__init__()
        self._complete = True

    def __del__(self) -> None:
        if self._complete:
            super().__del__()


def in_thread(load: Callable[[], Coroutine[Any, Any, T]], *, what: str) -> Callable[[], Awaitable[T]]:
    """Give `load` as a call that runs it on an event loop of its own, in a thread of its own: each cluster's may hang.

    `what`: whose credentials, for metrics and thread dumps. Who is cancelled leaves the thread to its end.
    """
    threads = Threads(f"credentials-{what}", 1)

    def run() -> T:
        with asyncio.Runner(loop_factory=_QuietLoop) as runner:
            return runner.run(load())

    return lambda: threads.run(run)


def rest_seconds(took: float) -> float:
    """Seconds until credentials are read again after a reading that took `took` seconds."""
    return min(max(REST_TIMES * took, REST_SECONDS_MIN), REST_SECONDS_MAX)
