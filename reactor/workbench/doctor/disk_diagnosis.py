"""Checks that the folder of the embedded bus can be written to, and has room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from reactor.runtime.threads import FILES
from reactor.settings.bus_settings import BusSettings
from reactor.workbench.doctor.finding import Finding, Findings, limited

GROUP = "disk"
MIB = 1 << 20
FULL_BYTES = 256 * MIB
"""Free bytes below which the server soon stores nothing more."""
LOW_BYTES = 2048 * MIB
"""Free bytes below which a day of many events may fill the disk."""


async def findings(settings: BusSettings, url: str | None, seconds: float) -> Findings:
    """Look at the store of the embedded server. `url`: of the bus, as the command line names it."""
    if url or settings.url:
        detail = "the bus is not embedded: watch the disks of your NATS servers"
        return [Finding(GROUP, "store", "skipped", detail)]

    async def look() -> Findings:
        return [await FILES.run(lambda: room(settings.store))]

    return await limited(GROUP, "store", look(), seconds)


def room(folder: Path) -> Finding:
    """Give what is to be said of a folder, which may not be there yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding(GROUP, "store", "failed", f"{there} cannot be written to", f"chown -R $(id -u) {there}")
    free = shutil.disk_usage(there).free
    detail = f"{free // MIB} MiB free for {folder}"
    fix = f"free space on the disk of {there}, or name another folder with bus.store"
    if free < FULL_BYTES:
        return Finding(GROUP, "store", "failed", detail, fix)
    if free < LOW_BYTES:
        return Finding(GROUP, "store", "warning", detail, fix)
    return Finding(GROUP, "store", "ok", detail)
