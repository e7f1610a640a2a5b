"""Since when the receivers of the fleet have taken every post without a break, so that no news of an alert was lost.

Alertmanager does not post an alert that fired and ended while no receiver took it. So what an earlier post said is not
known to have lasted over such a time. Nothing is stored: a receiver that starts, or could take no posts for a time,
asks the others, and goes on from their time where one has taken posts all along.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from bus import subjects
from bus.errors import BusError
from bus.json_text import parsed
from bus.port import Bus
from reactor.fleet.presence import present
from reactor.runtime.clock import Clock

log = logging.getLogger(__name__)

ROLE = "receiver"
ASK = timedelta(seconds=1)


class ReceiverUptime:
    """This process's view of the fleet's receivers, itself included where it is one."""

    def __init__(self, bus: Bus, clock: Clock, name: str) -> None:
        self._bus = bus
        self._clock = clock
        self._name = name
        self._takes_posts = False
        self._since: datetime | None = None
        """Since when posts have been taken, as far as this receiver knows; None: it was interrupted."""
        self._known_at = clock.now()
        """Time at which `_since` was set."""
        self._interruptions = 0
        self._wakers: set[Callable[[], None]] = set()

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer the others while the block runs, as receivers do. Raises Unavailable."""
        stop = await self._bus.listen(_subject(self._name), self._answer)
        try:
            yield
        finally:
            await stop()

    async def begin(self) -> None:
        """This process takes posts from now on, and goes on from the time of those that do so already."""
        self._takes_posts = True
        try:
            await self._ask()
        except BusError as error:
            log.info("other receivers are asked later", extra={"reason": str(error)})
        self._wake()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when this receiver begins, and when it was interrupted, until the function that is given back is
        called."""
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)

    def interrupted(self) -> None:
        """A post was refused, or would have been: the bus did not take it."""
        self._since = None
        self._interruptions += 1
        self._wake()

    def connection(self, *, up: bool) -> None:
        """The connection to the bus has something to tell, which may be no more than that it may not publish there."""
        if not up:
            self.interrupted()

    async def since(self) -> datetime | None:
        """Time since when receivers have taken every post; now, where none does.

        None: not known, as there are receivers of an earlier release only. Raises Unavailable.
        """
        known = self._own()
        return known if known is not None else await self._ask()

    async def _ask(self) -> datetime | None:
        now, interruptions = self._clock.now(), self._interruptions
        others = await self._of_others()
        if others is None:
            return None
        since = min(others, default=now)
        if self._takes_posts and self._interruptions == interruptions:
            self._go_on(since)
        return since

    def _wake(self) -> None:
        for wake in [*self._wakers]:
            wake()

    def _go_on(self, since: datetime) -> None:
        self._since, self._known_at = since, self._clock.now()

    def _own(self) -> datetime | None:
        # A post waits for a process that was stopped for a short time only.
        stopped = self._known_at < self._clock.standstill.long_ended_at
        return self._since if self._takes_posts and not stopped else None

    async def _answer(self, _: bytes) -> bytes:
        if self._takes_posts and self._own() is None:
            self._go_on(self._clock.now())
        known = self._own()
        return json.dumps({"since": known.isoformat() if known else None}).encode()

    async def _of_others(self) -> Sequence[datetime] | None:
        """Times of the receivers that have one. None: all receivers are of an earlier release, and do not answer."""
        names = [one.name for one in await present(self._bus) if ROLE in one.roles and one.name != self._name]
        listens = await asyncio.gather(*(self._bus.is_present(_subject(name), ASK) for name in names))
        asked = [name for name, there in zip(names, listens, strict=True) if there is not False]
        if names and not asked and not self._takes_posts:
            return None
        answers = await asyncio.gather(*(self._bus.request(_subject(name), b"", ASK) for name in asked))
        return [since for answer in answers if answer and (since := _read(answer))]


def _subject(name: str) -> str:
    return subjects.alive(f"{ROLE}-{name}")


def _read(answer: bytes) -> datetime | None:
    try:
        since = parsed(answer)["since"]
        return None if since is None else datetime.fromisoformat(since)
    except (ValueError, KeyError, TypeError) as error:
        log.warning("a receiver's answer cannot be read", extra={"reason": str(error)})
        return None
