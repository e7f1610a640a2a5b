"""The demo's temporary folder: its own, and gone afterwards.

Only a kill -9 leaves it behind, and then the next demo takes it away: a folder whose lock is free has no owner.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "reactor-demo-"
_LOCK = "lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give an empty folder that only its owner can enter; it is removed at the end of the block."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name).resolve()
        with (folder / _LOCK).open("w") as lock:  # not inheritable: it is free as soon as this process is gone
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # What cannot be opened or removed is another writer's, or was removed this very moment.
        with suppress(OSError):
            if folder.stat(follow_symlinks=False).st_uid == os.getuid() and _is_free(folder / _LOCK):
                shutil.rmtree(folder)


def _is_free(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
