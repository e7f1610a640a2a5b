"""Files that people write, read with a limit: neither a pipe without a writer nor an endless device stops us."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

BYTES_MAX = 16 << 20
"""Most bytes of a text file: far above the limits that rule files and settings have of their own."""


def text_of(path: Path) -> str:
    """Give the text of a regular file. Raises OSError, UnicodeDecodeError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file (text from a pipe: name it -)", str(path))
        if found.st_size > BYTES_MAX:
            raise OSError(errno.EFBIG, f"is larger than {BYTES_MAX >> 20} MiB", str(path))
        return file.read(BYTES_MAX).decode("utf-8")
