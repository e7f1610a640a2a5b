"""Waiting for the world: what is looked at has no event of its own, so it is polled often, up to a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from contextvars import ContextVar
from typing import Any, TypeVar

WITHIN = 120.0
"""Seconds. Nothing here takes a sixth of this on a quiet machine; ten tests side by side on two cores may be slow."""
LOOK = 0.02
ASK = 0.1
"""Seconds between two looks: the asked process has to work for each answer."""

T = TypeVar("T")


class KeptOpen:
    """Shared resource such as a connection: opened once, and again after it was closed because it failed."""

    def __init__(self) -> None:
        self._open: dict[object, Any] = {}
        self._stack = AsyncExitStack()

    async def of(self, key: object, open_: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Give what is open by this key."""
        if key not in self._open:
            self._open[key] = await self._stack.enter_async_context(open_())
        found: T = self._open[key]
        return found

    async def close(self) -> None:
        """Close all of it."""
        self._open.clear()
        await self._stack.aclose()


WAITING: ContextVar[KeptOpen | None] = ContextVar("WAITING", default=None)
"""Of the `until_told` that asks now; None: nothing is waited for."""


async def until(holds: Callable[[], T | None], what: str, *, within: float = WITHIN) -> T:
    """Wait until something holds, and give it. Fails with `what` was waited for."""
    try:
        async with asyncio.timeout(within):
            while not (found := holds()):
                await asyncio.sleep(LOOK)
            return found
    except TimeoutError:
        raise AssertionError(f"within {within:g} s it did not come to this: {what}") from None


async def until_told(ask: Callable[[], Awaitable[T | None]], what: str, *, within: float = WITHIN) -> T:
    """Ask until there is an answer, and give it."""
    kept = KeptOpen()
    before = WAITING.set(kept)
    try:
        async with asyncio.timeout(within):
            while not (found := await ask()):
                await asyncio.sleep(ASK)
            return found
    except TimeoutError:
        raise AssertionError(f"within {within:g} s nobody said: {what}") from None
    finally:
        WAITING.reset(before)
        await kept.close()
