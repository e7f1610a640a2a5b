"""Displays of the demo's sentences: live on a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from reactor.runtime.clock import Clock

if TYPE_CHECKING:
    from rich.live import Live

REPEAT_SECONDS = 2.0
"""Least seconds between two prints of the live line where it cannot be painted over."""
_SENTENCE_AT = len("   0.0s  xxxxxxxx ")
_LEAST_COLUMNS = 40
_STYLES = {"fault": "bold red", "healed": "bold green", "window": "yellow", "action": "bold cyan", "held": "magenta"}


class Display(Protocol):
    """Display that the story needs."""

    def title(self, text: str) -> None:
        """Show a line that stays."""

    def say(self, kind: str, text: str) -> None:
        """Show what has happened, with the time since the start."""

    def live(self, *lines: str) -> None:
        """Show the current state; the next call replaces it."""


def line(elapsed: float, kind: str, text: str) -> str:
    """Give one line: seconds since the start, what it is about, and the sentence."""
    return f"{elapsed:6.1f}s  {kind:<8} {text}"


def wrapped(text: str, columns: int) -> str:
    """Give a line of ours in several, each within so many columns; what follows is under the sentence.

    A word that is longer stays whole: it is an address to copy.
    """
    return "\n".join(
        textwrap.wrap(
            text, max(columns, _LEAST_COLUMNS), subsequent_indent=" " * _SENTENCE_AT, break_long_words=False,
            break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False,
        )
    )  # fmt: skip


class Plain:
    """Lines of text, without escape codes."""

    def __init__(self, clock: Clock, out: TextIO) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._out = out
        self._last: tuple[str, ...] = ()
        self._last_at = clock.monotonic()

    def title(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def say(self, kind: str, text: str) -> None:
        self.title(line(self._clock.monotonic() - self._began, kind, text))

    def live(self, *lines: str) -> None:
        now = self._clock.monotonic()
        if lines != self._last and now >= self._last_at + REPEAT_SECONDS:
            self._last, self._last_at = lines, now
            self.say("now", " | ".join(lines))


class TerminalDisplay:
    """The same lines in colour, and below them one that is painted over."""

    def __init__(self, clock: Clock, live: Live) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._live = live

    def title(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)  # its lines are the caller's

    def say(self, kind: str, text: str) -> None:
        from rich.text import Text

        said = wrapped(line(self._clock.monotonic() - self._began, kind, text), self._columns)
        self._live.console.print(Text(said, style=_STYLES.get(kind, "")), soft_wrap=True)

    def live(self, *lines: str) -> None:
        from rich.text import Text

        elapsed = self._clock.monotonic() - self._began
        now = "\n".join(wrapped(line(elapsed, "now", text), self._columns) for text in lines)
        self._live.update(Text(now, style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)

    @property
    def _columns(self) -> int:
        return self._live.console.width


@contextmanager
def display(clock: Clock, out: TextIO) -> Iterator[Display]:
    """Give the display that suits this output."""
    if not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield Plain(clock, out)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=out)
    with Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as live:
        yield TerminalDisplay(clock, live)
