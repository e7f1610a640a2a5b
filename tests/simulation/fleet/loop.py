"""An event loop on virtual time that can freeze a part of what it runs, as SIGSTOP freezes a process.

Time moves only when nothing is ready, and then at once to the next timer. The context of a callback names its process,
so everything that a process started, and whatever others woke up for it, waits while the process is frozen.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVarTuple

Ts = TypeVarTuple("Ts")
START = 1_000.0
"""The first moment, in seconds. Not zero: "never" must not be mistaken for "at the beginning"."""
CANCELLED_MIN = 100
"""Number of timers from which on cancelled ones are cleared away, once they are more than half."""
STEPS_MAX = 20_000
"""Largest number of turns that the loop may take without time moving on."""


class Owner:
    """A process whose callbacks can be frozen."""

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

    `shuffle`: decides the order of callbacks that are ready at the same moment; else as asyncio has it.
    """

    _ready: deque[Any]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, shuffle: Random | None = None) -> None:
        super().__init__()
        self._shuffle = shuffle
        self._virtual = START
        self._steps = 0
        self._timers: list[tuple[float, Any]] = []
        """Moments first: these are compared without a call into Python."""
        self.nobody = copy_context()
        """The context of what belongs to no process: the wire, the servers."""
        self.set_task_factory(_task)
        self.errors: list[str] = []
        """Errors that callbacks raised, which are reported nowhere else."""
        self.set_exception_handler(self._broken)

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual

    def go_on(self, owner: Owner) -> None:
        """Let a frozen one go on."""
        self._ready.extend(owner.thaw())

    def later(self, seconds: float, happen: Callable[..., object], *args: Any) -> None:
        """Let something happen that belongs to no process."""
        self.call_later(max(seconds, 0.0), happen, *args, context=self.nobody)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """The same without checks for threads and debuggers."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """The same without checks for threads and debuggers."""
        return self.call_at(self._virtual + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """The same without checks for threads and debuggers."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        entry: tuple[float, Any] = (when, timer)
        heapq.heappush(self._timers, entry)
        entry[1]._scheduled = True
        return timer

    def _run_once(self) -> None:
        """One turn: where others would wait for the network, jump to the next timer."""
        self._drop_cancelled()
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            if not timers:
                raise Stuck("everybody waits, and no timer is set")
            if timers[0][0] > self._virtual:
                self._virtual, self._steps = timers[0][0], 0
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise Stuck(f"time stands still at {self._virtual:.6f}: {list(ready)[:5]}")
        while timers and timers[0][0] <= self._virtual:
            timer = heapq.heappop(timers)[1]
            timer._scheduled = False
            ready.append(timer)
        self._sort_out(ready)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        timers = self._timers
        if len(timers) > CANCELLED_MIN and self._timer_cancelled_count > len(timers) / 2:
            self._timers = [entry for entry in timers if not entry[1]._cancelled]
            heapq.heapify(self._timers)
            self._timer_cancelled_count = 0
            return
        while timers and timers[0][1]._cancelled:
            heapq.heappop(timers)[1]._scheduled = False
            self._timer_cancelled_count -= 1

    def _sort_out(self, ready: deque[Any]) -> None:
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
        # Tasks and futures whose error was not retrieved are told of when they are collected, which may be any time.
        if "handle" in context:
            self.errors.append(f"{context['message']}: {context.get('exception')!r}")

    def _write_to_self(self) -> None:
        """Do nothing: no thread sleeps that would have to be woken."""


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **how)
    context = how.get("context")
    owner = OWNER.get() if context is None else context.get(OWNER)
    if owner is not None:
        owner.tasks.append(task)
    return task
