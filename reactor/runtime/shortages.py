"""Shortages of this process or its machine: what fails for one says nothing of those that it would have talked to."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

SHORTAGES = {
    errno.EMFILE: "this process has no file descriptors left: raise its limit (ulimit -n, LimitNOFILE)",
    errno.ENFILE: "this machine has no file descriptors left (fs.file-max)",
    errno.ENOSPC: "a disk of this machine is full",
    errno.EDQUOT: "a disk quota of this machine is used up",
    errno.ENOMEM: "this machine has no memory left",
}
"""Descriptions for operators, by error number."""
_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_TEXTS = {os.strerror(number): number for number in (errno.ENFILE, errno.EMFILE)}
"""The longer one first. Texts of the C library; programs in Go write them in lower case, of their own descriptors."""
_ERRNO = re.compile(rf"\[Errno ({'|'.join(map(str, SHORTAGES))})\]")
CHAIN_MAX = 10
"""Most errors of a chain of causes that are looked at."""


def shortage_of(error: BaseException | None) -> int | None:
    """Give the error number of the shortage that an error, or one that it came from, is about; None: another cause."""
    return next((one.errno for one in _chain(error) if isinstance(one, OSError) and one.errno in SHORTAGES), None)


def shortage_in(text: str) -> int | None:
    """Give the error number of the shortage that a text names; None: it names none."""
    if found := _ERRNO.search(text):
        return int(found[1])
    return next((number for words, number in _TEXTS.items() if words in text), None)


def descriptors_missing(error: BaseException | None = None) -> OSError | None:
    """Give the lack of file descriptors that an error came from, or that there is now; None: there are some.

    A name that could not be looked up for it fails with other words, so that one is opened to see.
    """
    for one in _chain(error):
        if isinstance(one, OSError) and one.errno in _DESCRIPTORS:
            return one
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as lacking:
        return lacking if lacking.errno in _DESCRIPTORS else None
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    waiting = [error]
    for _ in range(CHAIN_MAX):
        one = waiting.pop(0) if waiting else None
        if one is None:
            return
        yield one
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        causes = (getattr(one, "os_error", None), one.__cause__, one.__context__, *inner)
        waiting += [cause for cause in causes if isinstance(cause, BaseException)]
