"""Long loops over alerts, groups or facts, in slices: between two of them the loop does what else waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from typing import TypeVar

SLICE = 50
"""Items between two pauses: some 3 ms where an item costs 60 µs."""

Item = TypeVar("Item")


async def sliced(items: Sequence[Item], *, size: int = SLICE) -> AsyncIterator[Item]:
    """Give the items, with a pause after each `size` of them."""
    for index, item in enumerate(items, 1):
        yield item
        if index % size == 0:
            await asyncio.sleep(0)


async def paused(items: AsyncIterable[Item]) -> AsyncGenerator[Item]:
    """The same of items that come one by one: where many are there already, waiting for the next is no pause."""
    count = 0
    async for item in items:
        yield item
        count += 1
        if count % SLICE == 0:
            await asyncio.sleep(0)
