"""The screen itself: drawn again while something counts down, with keys, until it is left."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from reactor.cli.screen.dialog import Dialog
from reactor.cli.screen.item_lines import acts, blocks, items
from reactor.cli.screen.keyboard import keys
from reactor.cli.screen.ordering import carry_out
from reactor.cli.screen.screen_layout import HELP, Parts, screen
from reactor.runtime.visible import visible
from rules.core.group import Paused
from rules.engine.pauses import PAUSES

if TYPE_CHECKING:
    from reactor.cli.screen.watched import Watched

DRAW_SECONDS = 0.2
PLAIN_SECONDS = 2.0
"""Between two screens on a terminal that can only add lines."""


class Screen:
    """Screen of `reactor watch`, with its keys."""

    def __init__(self, watched: Watched, console: Console, by: str, where: str) -> None:
        self._watched, self._console, self._by, self._where = watched, console, by, where
        self._dialog = Dialog()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._glyphs = "█░" if (console.encoding or "").lower().startswith("utf") else "#."

    async def run(self, stop: asyncio.Event) -> None:
        """Show it until `q` or `stop`."""
        with ExitStack() as stack:
            if sys.stdin.isatty():
                stack.enter_context(keys(sys.stdin.fileno(), self._press, self._leave))
            if self._console.is_dumb_terminal:
                await self._plainly(stop)
                return
            live = stack.enter_context(
                Live(console=self._console, screen=True, auto_refresh=False, redirect_stdout=False,
                     redirect_stderr=False, vertical_overflow="crop")
            )  # fmt: skip
            while not (stop.is_set() or self._dialog.quit):
                live.update(self.drawn(self._console.width, self._console.height), refresh=True)
                await self._pause(stop, DRAW_SECONDS)

    async def _plainly(self, stop: asyncio.Event) -> None:
        last = ""
        while not (stop.is_set() or self._dialog.quit):
            text = "\n".join(
                line.rstrip() for line in self.drawn(self._console.width, 200).plain.split("\n") if line.strip()
            )
            if text != last:
                print(f"{text}\n", flush=True)
                last = text
            await self._pause(stop, PLAIN_SECONDS)

    async def _pause(self, stop: asyncio.Event, seconds: float) -> None:
        self._changed.clear()
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(self._changed.wait())]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()

    def _leave(self) -> None:
        self._dialog.quit = True
        self._changed.set()

    def _press(self, key: str) -> None:
        self._dialog.press(key, items(self._watched.groups, self._watched.rules, self._watched.clock.now()))
        for wanted in self._dialog.confirmed():
            task = asyncio.create_task(carry_out(wanted, self._watched, self._by, self._say))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._changed.set()

    def _say(self, text: str) -> None:
        self._dialog.said = text
        self._changed.set()

    def drawn(self, width: int, height: int) -> Text:
        """Give the whole screen as it is now."""
        watched, now = self._watched, self._watched.clock.now()
        found = items(watched.groups, watched.rules, now)
        chosen = self._dialog.position(found)
        own = [group for group in watched.groups if not group.rule.startswith("@")]
        parts = Parts(
            self._title(now, width), self._notices(), found, blocks(found, chosen, now, width, glyphs=self._glyphs),
            chosen, len(own) - len(found), acts(watched.actions(), width), self._bottom(),
        )  # fmt: skip
        return screen(parts, width, height)

    def _title(self, now: datetime, width: int) -> Text:
        clock = f"{now:%H:%M:%S} UTC"
        left = f"reactor watch  {visible(self._where)}"
        return Text(f"{left:<{max(width - len(clock) - 1, 0)}.{max(width - len(clock) - 1, 0)}} {clock}", style="bold")

    def _notices(self) -> list[Text]:
        lines = []
        if silent := self._watched.stale_seconds():
            text = f"STALE: the bus has not answered for {silent:.0f} s: what is shown may be old"
            lines.append(Text(text, style="bold white on red"))
        if self._watched.problem:
            lines.append(Text(f"not all can be read: {visible(self._watched.problem)}", style="red"))
        pauses = [(one.object, one.paused) for one in self._watched.groups if one.rule == PAUSES]
        # Each partition has its own copy.
        words = dict.fromkeys(_pause(pattern, paused) for pattern, paused in pauses if paused is not None)
        return [*lines, *(Text(visible(text), style="bold yellow") for text in words)]

    def _bottom(self) -> list[Text]:
        wanted = self._dialog.wanted
        if wanted is None:
            return [Text(visible(self._dialog.said), style="bold"), Text(HELP, style="dim")]
        if wanted.confirming:
            question = Text(f"Do it? y: yes, any other key: no   (reason: {wanted.comment.strip()})", style="bold")
            return [Text(wanted.words, style="bold magenta"), question]
        hint = self._dialog.said or "Enter: go on, Esc: leave it"
        shown = wanted.comment[-(self._console.width - 30) :]
        return [Text(f"{wanted.words}  ({hint})", style="bold magenta"), Text(f"reason, for the audit: {shown}_")]


def _pause(pattern: str, paused: Paused) -> str:
    rules = "all rules are" if pattern == "*" else f"{pattern} is"
    until = f" until {paused.until:%H:%M:%S}" if paused.until is not None else ""
    return f"{rules} paused{until} by {paused.by}: {paused.reason}"
