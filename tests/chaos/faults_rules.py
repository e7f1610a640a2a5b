"""The rule file changes while windows are open: it is edited, or broken and mended."""

from __future__ import annotations

import asyncio
import signal
from random import Random

from tests.chaos.faults import Fault
from tests.chaos.world import World

LONGER = 0.01
"""Seconds by which an edit makes each toleration longer or shorter: every rule has changed, and the script holds."""
INVALID = (
    "rules: [",
    "apiVersion: reactor/v1\nrules:\n- {name: half, kind: TrafficFailover, mode: Enforce, tolerationSeconds: -1}\n",
    "apiVersion: reactor/v9\nrules: []\n",
    "",
)


def _write(world: World, text: str, random: Random) -> None:
    """Make it the content of the file; some processes are told (SIGHUP), the others notice."""
    (world.folder / "rules.yaml").write_text(text, "utf-8")
    for member in world.members:
        if random.random() < 0.5:
            member.signal(signal.SIGHUP)


async def edit(world: World, random: Random) -> None:
    """All rules are changed again and again. A window that restarted each time would never end."""
    while world.now < world.seconds:
        await asyncio.sleep(random.uniform(0.4, 1.5))
        _write(world, world.rules(longer=random.choice((-LONGER, 0, LONGER))), random)


async def spoil(world: World, random: Random) -> None:
    """The file is broken for most of the time: the rules of before go on."""
    good = world.rules()
    while world.now < world.seconds:
        _write(world, random.choice(INVALID), random)
        await asyncio.sleep(random.uniform(1, 4))
        if random.random() < 0.3:
            _write(world, good, random)
            await asyncio.sleep(random.uniform(0.1, 1))
    _write(world, good, random)


FAULTS = (Fault("rules:changed", edit), Fault("rules:invalid", spoil))
