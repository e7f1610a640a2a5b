"""One simulated process: it runs real roles, and can be killed, frozen, and cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from random import Random
from typing import Any

from tests.simulation.fleet.clock import SimClock
from tests.simulation.fleet.cluster import bus_unavailable, unavailable
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.loop import OWNER, Owner, VirtualLoop

FORGOTTEN = 6.0
"""Seconds after which a server takes a connection for gone that nothing comes through: two pings that got no answer."""


class Process(Owner):
    """One process from its start to its death."""

    def __init__(
        self, loop: VirtualLoop, name: str, seed: str, *, skew: float, tell: Callable[[str, str], None]
    ) -> None:
        """`tell(name, what)` hears every call that it makes."""
        super().__init__()
        self._loop, self._tell = loop, tell
        self.name = name
        self.dead = False
        random = Random(seed)
        self.clock = SimClock(loop, skew=random.uniform(-skew, skew), begun=random.uniform(0, 900))
        self.bus = Link(loop, self, Random(f"{seed} bus"), bus_unavailable)
        self.api = Link(loop, self, Random(f"{seed} api"), unavailable)

    def start(self, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run something as this process's own."""

        async def main() -> None:
            await run()

        context = copy_context()
        context.run(OWNER.set, self)
        return self._loop.create_task(main(), context=context)

    def listens(self) -> bool | None:
        """True if a request would be answered, as the server sees it; None: not known."""
        cut = self.bus.cut_since
        if self.dead or (cut is not None and self._loop.time() - cut > FORGOTTEN):
            return False
        return None if self.frozen or cut is not None else True

    def kill(self) -> None:
        """End it here and now. What its cleanup still tries comes to nothing: its links are dead first."""
        self.dead = True
        if self.frozen:
            self._loop.go_on(self)
        for task in self.tasks:
            task.cancel()

    def freeze(self) -> None:
        """Stop it at once, wherever it is; the links stay as they are."""
        self.frozen = not self.dead

    def thaw_now(self) -> None:
        """Let it go on, unless it was killed meanwhile."""
        if self.frozen:
            self._loop.go_on(self)

    def trace(self, what: str) -> None:
        """Write down a call."""
        if not self.dead:  # in which order the rest of a killed process falls apart does not matter
            self._tell(self.name, what)

    def leftovers(self) -> list[Any]:
        """Tasks that have not ended."""
        return [task for task in self.tasks if not task.done()]
