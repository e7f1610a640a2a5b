"""The wall clock jumps by an hour while the reactors run. Needs libfaketime, Debian's package."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random

from tests.chaos.faults import Fault
from tests.chaos.world import World

ENVIRONMENT = "FAKETIME_LIBRARY"
"""Where libfaketime.so.1 is, if it is not where Debian puts it."""
LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime")
HOUR = 3600


def library() -> Path | None:
    """Where libfaketime is, if it is."""
    found = [Path(folder) / "libfaketime.so.1" for folder in LIBRARIES]
    if named := os.environ.get(ENVIRONMENT):
        found.insert(0, Path(named))
    return next((path for path in found if path.is_file()), None)


def lacks() -> str:
    """Why no wall clock can be moved here."""
    return "" if library() else f"no libfaketime: apt-get install libfaketime (Debian), or name it in {ENVIRONMENT}"


async def jump(world: World, random: Random) -> None:
    """An hour ahead, then an hour behind, then back; on both reactors at once, and on one of them alone."""
    rate = world.folder / "faketime"
    rate.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library()), "FAKETIME_TIMESTAMP_FILE": str(rate), "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    async with world.trouble(recovery=2.0):
        for member in world.members:
            await member.stop()
            member.environment.update(environment)
            await member.start()
    for shift in (HOUR, -HOUR, 0):
        await asyncio.sleep(random.uniform(3, 5))
        rate.write_text(f"{shift:+d}")


FAULTS = (Fault("clock:jumps", jump, seconds=36, lacks=lacks),)
