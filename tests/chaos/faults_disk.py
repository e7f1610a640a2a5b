"""The bus's disk is full. Needs a small file system of its own: a tmpfs, which only root may mount."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from tests.chaos.faults import Fault
from tests.chaos.faults_bus import BACK
from tests.chaos.faults_process import TAKEN_OVER
from tests.chaos.member import ROUTES_AGAIN
from tests.chaos.world import World

SIZE_BYTES = 48 << 20


def lacks() -> str:
    """Reason why no small disk can be mounted here; empty: it can."""
    if not sys.platform.startswith("linux") or shutil.which("mount") is None:
        return "no mount on this system"
    if os.geteuid() != 0:
        return "only root may mount a tmpfs"
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return "" if done.returncode == 0 else f"a tmpfs cannot be mounted: {done.stderr.decode().strip()}"


@asynccontextmanager
async def _small_disk(store: Path) -> AsyncIterator[None]:
    """Move the store onto a file system of its own, while the server is down."""
    aside = store.with_name("aside")
    store.rename(aside)
    store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(store)], check=True)
    try:
        shutil.copytree(aside, store, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(store)], check=True)


async def move(world: World) -> None:
    """Let the bus have a small disk of its own, if it has none yet."""
    store = world.server.folder
    if not store.is_mount():  # the next seeds find it so
        async with world.trouble(recovery=BACK + TAKEN_OVER):
            await world.server.kill()
            mounted = _small_disk(store)
            await mounted.__aenter__()
            world.cleanup.push_async_exit(mounted)
            await world.server.start()


async def full(world: World, random: Random) -> None:
    """For some seconds nothing more can be stored."""
    await move(world)
    await asyncio.sleep(random.uniform(1, 5))
    filler = world.server.folder / "filler"
    # A server that met a full disk may have turned JetStream off; its supervisor restarts it once there is room.
    async with world.trouble(recovery=BACK + TAKEN_OVER + ROUTES_AGAIN):
        fill(filler)
        await asyncio.sleep(random.uniform(2, 6))
        filler.unlink()
        await world.server.restart()


def fill(file: Path) -> None:
    """Leave no room."""
    with file.open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 16)):
                pass
        except OSError:
            return  # full, as ordered


FAULTS = (Fault("nats:disk-full", full, seconds=14, lacks=lacks),)
