"""Waiting for what may hang: a kubeconfig may name a program that gives the credentials, and it may never end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from reactor.clients.kubernetes_port import ApiUnavailable

WAIT_SECONDS = 30.0
T = TypeVar("T")


class Loading(Generic[T]):
    """One call at a time, shared by all who ask for it; no caller waits longer than WAIT_SECONDS at once.

    One that hangs is left to go on, and the next caller waits for it too: a second call would only leave a second
    program behind that no process ends.
    """

    def __init__(self, load: Callable[[], Awaitable[T]], *, what: str) -> None:
        self._load = load
        self._what = what
        self._task: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Give what it loads. Raises ApiUnavailable where that takes too long, and what the call itself raises."""
        task = self._task = self._task or asyncio.ensure_future(self._loaded())
        done, _ = await asyncio.wait({task}, timeout=WAIT_SECONDS)
        if not done:
            raise ApiUnavailable(
                f"{self._what}: its credentials were not there within {WAIT_SECONDS:g} s: does the program hang that "
                "its kubeconfig gets them from?"
            )
        if self._task is task:
            self._task = None
        return task.result()

    async def stop(self) -> None:
        """End it, whatever comes of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _loaded(self) -> T:
        return await self._load()
