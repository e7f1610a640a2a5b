"""Threads for calls that block: bounded for each purpose, so that one kind of call waits for no other.

Each call has a daemon thread of its own. One that hangs keeps its place, but never the process from ending: the
standard library's executors are waited for at the end, however long a server drips.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from reactor.runtime import telemetry

T = TypeVar("T")


class Threads:
    """Thread pool with at most so many calls at the same time; further ones wait, first come, first served."""

    def __init__(self, name: str, most: int) -> None:
        """`name`: of the purpose, for metrics and thread dumps."""
        self._name = name
        self._most = most
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def run(self, call: Callable[[], T]) -> T:
        """Make the call in a thread and give what it gives. Who is cancelled leaves the thread to its end."""
        loop = asyncio.get_running_loop()
        places = self._places.setdefault(loop, asyncio.Semaphore(self._most))
        with telemetry.threads_waiting.labels(self._name).track_inprogress():
            await places.acquire()
        answer: asyncio.Future[T] = loop.create_future()

        def told(tell: Callable[[], None]) -> None:
            places.release()
            if not answer.cancelled():
                tell()

        def work() -> None:
            try:
                tell = partial(answer.set_result, call())
            except BaseException as raised:  # noqa: BLE001 - the caller that waits gets it, whatever it is
                tell = partial(answer.set_exception, raised)
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: no caller waits
                loop.call_soon_threadsafe(told, tell)

        try:
            threading.Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            places.release()
            raise
        return await answer


FILES = Threads("files", 4)
"""Threads for reading files, which may lie on a network."""
CLOUD = Threads("cloud", 8)
"""Threads for clouds' APIs, whose client blocks."""
