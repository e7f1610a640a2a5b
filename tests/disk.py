"""A small file system of a test's own, which only root may mount, and how to fill it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SMALL_BYTES = 48 << 20


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


@contextmanager
def small(folder: Path) -> Iterator[Path]:
    """A tmpfs of SMALL_BYTES at this folder while the block runs."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Take all the room that is left: to the last byte."""
    for size in (1 << 16, 1):
        with file.open("ab", buffering=0) as filler:
            try:
                while filler.write(bytes(size)):
                    pass
            except OSError:
                continue  # full, as ordered
