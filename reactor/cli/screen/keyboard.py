"""The keys of a terminal, one at a time, without their echo."""

from __future__ import annotations

import asyncio
import codecs
import os
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAMED = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down"}


@contextmanager
def keys(fd: int, pressed: Callable[[str], None], gone: Callable[[], None]) -> Iterator[None]:
    """Tell `pressed` of each key while the block runs; `gone`: the terminal was closed. Ctrl-C stays a signal."""
    before = termios.tcgetattr(fd)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    loop = asyncio.get_running_loop()

    def readable() -> None:
        try:
            data = os.read(fd, 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(fd)
            gone()
            return
        for key in named(decoder.decode(data)):
            pressed(key)

    _raw(fd)
    loop.add_reader(fd, readable)
    try:
        yield
    finally:
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSANOW, before)


def _raw(fd: int) -> None:
    tty.setcbreak(fd, termios.TCSANOW)
    mode = termios.tcgetattr(fd)
    mode[6][termios.VSUSP] = b"\0"  # a stopped program would leave its screen to the shell
    termios.tcsetattr(fd, termios.TCSANOW, mode)


def named(text: str) -> Iterator[str]:
    """Give each key of what was read: a character, `up`, `down`. Sequences of other keys are left out."""
    while text:
        name = next((known for known in _NAMED if text.startswith(known)), None)
        if name is not None:
            yield _NAMED[name]
            text = text[len(name) :]
        elif text[0] == "\x1b" and text[1:2] in ("[", "O"):
            rest = text[2:].lstrip("0123456789;?")
            text = rest[1:]
        else:
            yield text[0]
            text = text[1:]
