"""Work that may be done a little later, a few at a time: no action waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

AT_ONCE = 4
CLOSE_SECONDS = 2.0
"""Seconds to wait at the end for work that is not done."""


class BackgroundTasks:
    """Coroutines that no action waits for: `async with BackgroundTasks() as tasks: tasks(some_coroutine())`. The
    coroutines tell of their own failures."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> BackgroundTasks:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this when there is time."""
        task = asyncio.create_task(self._do(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            work.close()
            raise
        try:
            await work
        finally:
            self._slots.release()
