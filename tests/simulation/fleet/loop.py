"""An event loop on virtual time that can freeze a part of what it runs, as SIGSTOP freezes a process.

Time moves only when nothing is ready, and then at once to the next timer. Whose a callback is stands in its context, so
everything that a process started, and whatever others woke up for it, waits while the process is frozen.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from random import Random
from typing import Any

START = 1_000.0
"""The first moment, in seconds. Not zero: nobody shall mistake "never" for "at the beginning"."""
STEPS_MAX = 20_000
"""How many turns the loop may take without time moving on."""


class Owner:
    """Somebody whose callbacks can be frozen."""

    def __init__(self) -> None:
        self.frozen = False
        self.tasks: list[asyncio.Task[Any]] = []
        self._held: list[asyncio.Handle] = []

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep what would have run."""
        self._held.append(handle)

    def thaw(self) -> list[asyncio.Handle]:
        """Go on: give what was kept, in its order."""
        held, self._held, self.frozen = self._held, [], False
        return held


OWNER: ContextVar[Owner | None] = ContextVar("owner", default=None)


class Stuck(Exception):
    """Nothing will ever happen again, or time no longer moves."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop for one run.

    `shuffle`: whoever is ready at the same moment runs in an order that this decides; else as asyncio has it.
    """

    _selector: Any

    def __init__(self, shuffle: Random | None = None) -> None:
        super().__init__()
        self._shuffle = shuffle
        self._virtual = START
        self._steps = 0
        self._any: Any = self  # the parts of BaseEventLoop that it shares with its subclasses only
        self._selector = self
        self.nobody = copy_context()
        """The context of what belongs to no process: the wire, the servers."""
        self.set_task_factory(_task)
        self.errors: list[str] = []
        """What a callback raised: nobody else would hear of it."""
        self.set_exception_handler(self._broken)

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual

    def go_on(self, owner: Owner) -> None:
        """Let a frozen one go on."""
        self._any._ready.extend(owner.thaw())

    def later(self, seconds: float, happen: Callable[..., object], *args: Any) -> None:
        """Let something happen that belongs to no process."""
        self.call_later(max(seconds, 0.0), happen, *args, context=self.nobody)

    def select(self, timeout: float | None) -> list[object]:
        """Stand in for the selector: where others would wait for the network, jump to the next timer."""
        ready, scheduled = self._any._ready, self._any._scheduled
        if timeout is None:
            raise Stuck("everybody waits, and no timer is set")
        if timeout > 0:
            self._virtual, self._steps = max(self._virtual, scheduled[0].when()), 0
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise Stuck(f"time stands still at {self._virtual:.6f}: {list(ready)[:5]}")
        while scheduled and scheduled[0].when() <= self._virtual:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        self._sort_out(ready)
        return []

    def _sort_out(self, ready: Any) -> None:
        run = []
        for handle in ready:
            owner = handle._context.get(OWNER)
            if owner is not None and owner.frozen:
                owner.hold(handle)
            else:
                run.append(handle)
        if self._shuffle is not None and len(run) > 1:
            self._shuffle.shuffle(run)
        ready.clear()
        ready.extend(run)

    def _broken(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # Tasks and futures whose error nobody asked for are told of when they are collected, which may be any time.
        if "handle" in context:
            self.errors.append(f"{context['message']}: {context.get('exception')!r}")

    def _process_events(self, events: list[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who would have to be woken."""


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **how)
    context = how.get("context")
    owner = OWNER.get() if context is None else context.get(OWNER)
    if owner is not None:
        owner.tasks.append(task)
    return task
