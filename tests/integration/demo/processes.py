"""Processes as the demo starts them, and how to see that they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

PATIENCE = 60.0  # seconds; a busy machine takes its time to start Python


async def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something that another process does."""
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await asyncio.sleep(0.02)
    assert happened(), what


def runs(pid: int) -> bool:
    """True if this process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
