"""The wall clock jumps by an hour while the reactors run. Needs libfaketime, Debian's package."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.chaos.faults import Fault
from tests.chaos.world import World

ENVIRONMENT = "FAKETIME_LIBRARY"
"""Environment variable with the path of libfaketimeMT.so.1, if it is not where Debian puts it."""
NAME = "libfaketimeMT.so.1"
FOLDERS = (
    Path(sys.executable).parent,  # where scripts/debian-packages puts it
    Path("/usr/lib/x86_64-linux-gnu/faketime"), Path("/usr/lib/aarch64-linux-gnu/faketime"), Path("/usr/lib/faketime"),
)  # fmt: skip
HOUR = 3600
OFFSET = "faketime"
"""The file in which reactors read how far their wall clock is off, in seconds."""


def library() -> Path | None:
    """Path of libfaketime; None: not found."""
    found = [folder / NAME for folder in FOLDERS]
    if named := os.environ.get(ENVIRONMENT):
        found.insert(0, Path(named))
    return next((path for path in found if path.is_file()), None)


def lacks() -> str:
    """Reason why no wall clock can be moved here; empty: it can."""
    return (
        ""
        if library()
        else f"no libfaketime: scripts/debian-packages fetches it from Debian; or name it in {ENVIRONMENT}"
    )


def environment(folder: Path) -> Mapping[str, str]:
    """Give what loads it; a file says how far the clock is off, and the monotonic clock is left alone."""
    (folder / OFFSET).write_text("+0", "utf-8")
    return {
        "LD_PRELOAD": str(library()), "FAKETIME_TIMESTAMP_FILE": str(folder / OFFSET), "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip


async def jump(world: World, random: Random) -> None:
    """An hour ahead, an hour behind and back, in any order; on all reactors at once, as they are on one machine."""
    for shift in random.sample((HOUR, -HOUR, 0), 3):
        await asyncio.sleep(random.uniform(1, 4))
        (world.folder / OFFSET).write_text(f"{shift:+d}", "utf-8")


FAULTS = (Fault("clock:jumps", jump, seconds=14, heavy=True, lacks=lacks, environment=environment),)
