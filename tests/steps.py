"""Processor time of each step of the event loop."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT_SECONDS = 0.1
"""No step may take more, on a machine as fast as one where `_UNIT` takes so long:"""
UNIT_SECONDS = 0.012


@contextmanager
def steps_measured() -> Iterator[list[float]]:
    """The CPU time of each step of the event loop, in seconds. The garbage collector's own pauses are left out."""
    taken: list[float] = []
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - before)

    asyncio.Handle._run = measured  # type: ignore[method-assign, assignment]
    gc.disable()
    try:
        yield taken
    finally:
        gc.enable()
        asyncio.Handle._run = run  # type: ignore[method-assign]


def step_limit() -> float:
    """Longest time of a step on this machine, as fast as it is now."""
    return LIMIT_SECONDS * max(1.0, max(_unit() for _ in range(5)) / UNIT_SECONDS)


def _unit() -> float:
    """Some work that every machine does the same."""
    before = time.thread_time()
    words: dict[str, int] = {}
    for number in range(40_000):
        words[f"{number % 1000}"] = len(words) + number
    return time.thread_time() - before
