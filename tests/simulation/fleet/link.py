"""The way from one process to a server and back: late, lossy, cut, and the place where processes die.

A request that is on its way arrives, whatever becomes of its sender meanwhile: killed, frozen, or no longer waiting. So
each operation is done by the wire, which belongs to no process, and requests of one process arrive in the order they
left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from tests.simulation.fleet.loop import VirtualLoop

T = TypeVar("T")
LATENCY = (0.0005, 0.004)
SLOW = (0.2, 3.0)
MEND = 0.25
"""Interval in seconds at which a reader looks whether the link works again."""
TIMEOUT = 2.0
"""Seconds after which a caller that got no answer is told so."""


class Sender(Protocol):
    """The process at this end."""

    @property
    def dead(self) -> bool:
        """True if it was killed."""
        ...

    def trace(self, what: str) -> None:
        """Write down what it does."""
        ...


@dataclass(slots=True)
class Trap:
    """At the n-th call from now something is done to the caller: before the call leaves, or when it was carried out."""

    calls: int
    late: bool
    spring: Callable[[], None]
    of: str = ""
    """Only calls whose names begin so count."""


class Link:
    """One process's connection to one server."""

    def __init__(self, loop: VirtualLoop, sender: Sender, random: Random, gone: Callable[[str], Exception]) -> None:
        """`gone`: the error that says that there was no answer."""
        self._loop, self._sender, self._random, self._gone = loop, sender, random, gone
        self._arrives = 0.0
        self.rate = 0.0
        """Probability that a call fails, from 0 to 1."""
        self.mute = False
        """True while messages that ask for no answer are lost."""
        self.cut_since: float | None = None
        self.traps: list[Trap] = []

    @property
    def up(self) -> bool:
        """True if messages get through."""
        return self.cut_since is None and not self._sender.dead

    def latency(self) -> float:
        """Delay of one message in seconds."""
        if self.rate and self._random.random() < self.rate:
            return self._random.uniform(*SLOW)
        return self._random.uniform(*LATENCY)

    async def call(self, what: str, operation: Callable[[], Awaitable[T]]) -> T:
        """Let the server do something. Raises what it answers, or that there was no answer."""
        late = await self._step_on_traps(what)
        self._sender.trace(what)
        if self._sender.dead:
            raise self._gone("killed")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._arrives = max(self._arrives, self._loop.time() + self.latency())
        fate = self._random.random() / self.rate if self.rate else 1.0
        if fate < 0.4:
            self._loop.later(TIMEOUT, self._fail, answer, f"{what}: the request was lost")
        else:
            wire = self._arrives - self._loop.time()
            self._loop.later(wire, self._arrive, what, operation, answer, fate < 0.8, late)
        return await answer

    def say(self, what: str, operation: Callable[[], Awaitable[object]], *, asked_again: bool = False) -> None:
        """Tell the server something without asking for an answer. `asked_again`: until it has one."""
        self._sender.trace(what)
        if self.up and (asked_again or not self.mute) and not (self.rate and self._random.random() < self.rate):
            self._arrives = max(self._arrives, self._loop.time() + self.latency())
            self._loop.later(self._arrives - self._loop.time(), _done, operation)

    def some(self, number: int) -> int:
        """Number of messages of a pipelined batch that get through."""
        torn = number > 1 and bool(self.rate) and self._random.random() < self.rate
        return self._random.randrange(number) if torn else number

    async def delivered(self) -> None:
        """Wait as long as something from the server is on its way."""
        await asyncio.sleep(self.latency())
        while not self.up:
            await asyncio.sleep(MEND)

    async def until(self, due: float, until: float) -> bool:
        """Wait for what arrives at `due`, at most until `until`. False: it did not come through."""
        await asyncio.sleep(max(min(due, until) - self._loop.time(), 0))
        while not self.up and self._loop.time() < until:
            await asyncio.sleep(min(MEND, max(until - self._loop.time(), 0)))
        return self.up and self._loop.time() >= due

    def trace(self, what: str) -> None:
        """Write down what the process does."""
        self._sender.trace(what)

    async def _step_on_traps(self, what: str) -> Callable[[], None] | None:
        for trap in [trap for trap in self.traps if what.startswith(trap.of)]:
            trap.calls -= 1
            if trap.calls > 0:
                continue
            self.traps.remove(trap)
            if trap.late:
                return trap.spring
            trap.spring()
            await asyncio.sleep(0)  # frozen: until it goes on; killed: until it is cancelled
        return None

    def _arrive(
        self, what: str, operation: Callable[[], Awaitable[T]], answer: asyncio.Future[T], lost: bool,
        trap: Callable[[], None] | None,
    ) -> None:  # fmt: skip
        if self.cut_since is not None:
            self._loop.later(TIMEOUT, self._fail, answer, f"{what}: cut off")
            return
        result, error = _done(operation)
        if trap is not None:
            trap()
        if lost:
            self._loop.later(TIMEOUT, self._fail, answer, f"{what}: the answer was lost")
        else:
            self._loop.later(self.latency(), self._answer, what, answer, result, error)

    def _answer(self, what: str, answer: asyncio.Future[T], result: T, error: Exception | None) -> None:
        if self.cut_since is not None:
            self._loop.later(TIMEOUT, self._fail, answer, f"{what}: cut off before the answer")
        elif not answer.done():
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

    def _fail(self, answer: asyncio.Future[Any], why: str) -> None:
        if not answer.done():
            answer.set_exception(self._gone(why))


def _done(operation: Callable[[], Awaitable[Any]]) -> tuple[Any, Exception | None]:
    """Carry out what takes a server no time: nothing in it may wait."""
    doing = operation()
    assert isinstance(doing, Coroutine)
    try:
        doing.send(None)
    except StopIteration as done:
        return done.value, None
    except Exception as error:  # noqa: BLE001 - the server's answer, whatever it is
        return None, error
    raise AssertionError("a server's operation waited")
