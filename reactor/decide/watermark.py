"""Up to when is all known that came in? No rule acts on half a story, and part of it may be held by another process.

What comes in waits in the inbox until a router has stored it as facts, and a router that died or lost its line keeps
what it had in flight for as long as `ack_wait`. So before a deadline is acted on, all that was in the inbox at that
time must have left it, and all facts must have been read. Found by chaos: a route was moved to a secondary whose
failure was in the hands of a router that was cut off.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from bus.errors import Unavailable
from bus.port import Bus, LogReader, StreamBounds
from bus.topology import INBOX
from reactor.runtime.clock import Clock

STUCK_SECONDS = 20.0
"""The oldest message of the inbox is waited for so long: twice what it takes until another router has it. A message
that no router ever gets done, or that a full disk left behind, must not stop all failovers."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _InboxQuestion:
    at: datetime
    """Time of the question how far the inbox reaches."""
    last: int
    """Sequence of the last message of the inbox at that time."""
    newest: int | None = None
    """The newest fact, once all of that was routed."""


class Watermark:
    """Progress of one partition's reader and of the routers: up to when all input is known."""

    def __init__(self, bus: Bus, clock: Clock, reading: LogReader) -> None:
        self._bus = bus
        self._clock = clock
        self._reading = reading
        self._asked: _InboxQuestion | None = None
        self._oldest = 0
        self._since = 0.0
        """Monotonic time at which the oldest message of the inbox was first seen as its oldest."""

    async def up_to(self, moment: datetime, taken: int) -> datetime | None:
        """Give a moment, `moment` or later, up to which all is known that came in; None: not yet, ask again.

        `taken`: sequence of the last fact that was decided on. The reader may have given out more.
        """
        try:
            return await self._asked_for(moment, taken)
        except Unavailable:
            return None

    async def _asked_for(self, moment: datetime, taken: int) -> datetime | None:
        asked = self._asked
        if asked is not None and asked.at >= moment and asked.newest is not None and taken >= asked.newest:
            return asked.at  # read meanwhile: no question takes as long as those before it
        now, inbox = self._clock.now(), await self._bus.extent(INBOX)
        if asked is None or asked.at < moment or inbox.last < asked.last:  # less: the bus was wiped
            asked = self._asked = _InboxQuestion(now, inbox.last)
        if inbox.first <= asked.last and not self._is_stuck(inbox):
            return None
        # Only now: what was routed meanwhile is unread. And once: who reads as fast as facts come gets done as well.
        newest = await self._reading.newest()
        asked.newest = newest if asked.newest is None else min(asked.newest, newest)
        return asked.at if taken >= asked.newest else None

    def _is_stuck(self, inbox: StreamBounds) -> bool:
        now = self._clock.monotonic()
        if inbox.first != self._oldest:
            self._oldest, self._since = inbox.first, now
        if now - self._since < STUCK_SECONDS:
            return False
        log.error(
            "message %d of the inbox is not routed since %.0f s: windows run out without it. Is there a router?",
            inbox.first, now - self._since,
        )  # fmt: skip
        return True
