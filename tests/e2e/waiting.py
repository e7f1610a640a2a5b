"""Waiting for the world: what is looked at has no event of its own, so it is looked at often, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

WITHIN = 120.0
"""Seconds. Nothing here takes a sixth of this on a quiet machine; ten tests side by side on two cores may be slow."""
LOOK = 0.02
ASK = 0.1
"""Who is asked has to work for the answer, and has better things to do."""

T = TypeVar("T")


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
    """Wait until somebody who has to be asked says so, and give what they say."""
    try:
        async with asyncio.timeout(within):
            while not (found := await ask()):
                await asyncio.sleep(ASK)
            return found
    except TimeoutError:
        raise AssertionError(f"within {within:g} s nobody said: {what}") from None
