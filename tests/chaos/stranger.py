"""A process outside of the fleet that publishes the health of targets: on every change at once, and again every second.

As any source does it: what the bus does not take is said again, with the time at which it is said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count

from bus import subjects
from bus.envelope import encode
from bus.errors import BusError
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from reactor.audit.spans import Span
from reactor.runtime.clock import Clock
from tests.chaos.nursery import CODE

NAME = "stranger"
REFRESH_SECONDS = 1.0
"""Seconds between repetitions. Messages in flight at a router that was killed or stopped come late: this
replaces them."""
ALL_EVERY = 8
"""Each so many seconds all are told, in between those whose turn it is."""
CUT_OFF_SECONDS = 0.25
"""A busy bus takes so long."""
STALE_SECONDS = 60.0
VALID_SECONDS = 2.0
NEWER = frozenset(("source", "since", "validSeconds", "version", "resolutionSeconds", "detail"))
"""Fields of an observation that version 0.1.0 does not know."""
OLD = "valid_seconds" not in (CODE / "bus" / "messages" / "health.py").read_text("utf-8")


class Stranger:
    """One publisher for many targets."""

    def __init__(self, bus: JetStreamBus, clock: Clock, targets: Iterable[str]) -> None:
        self._bus = bus
        self._clock = clock
        self.healthy = dict.fromkeys(targets, True)
        """Current health by target."""
        self._since = dict.fromkeys(self.healthy, clock.now())
        """And since when."""
        self._turned: set[str] = set()
        self.followed: Sequence[str] = ()
        """Those that may change now."""
        self._bell = asyncio.Event()
        self.refused = 0
        """Number of observations that the bus did not accept."""
        self.cut_off: list[Span] = []
        """Times in which the bus accepted none for longer than CUT_OFF_SECONDS, on the event loop's clock."""

    def turn(self, target: str, *, healthy: bool) -> None:
        """Set the target's health."""
        self.healthy[target] = healthy
        self._since[target] = self._clock.now()
        self._turned.add(target)
        self._bell.set()

    def observation(self, target: str, *, ago: float = 0.0, healthy: bool | None = None) -> Outgoing:
        """Give the message that tells of a target; `ago` seconds in the past, as it is or as it is said to be."""
        status = Health.HEALTHY if (self.healthy[target] if healthy is None else healthy) else Health.UNHEALTHY
        at: datetime = self._clock.now() - timedelta(seconds=ago)
        said = Observation(
            target=target, status=status, signal=NAME, observed_at=at, stale_seconds=STALE_SECONDS,
            valid_seconds=VALID_SECONDS, since=None if ago or healthy is not None else self._since[target],
        )  # fmt: skip
        id_ = f"{target}/{at.isoformat()}/{status}"
        body = _known(encode(said, id=id_, source="/stranger", time=at))
        return Outgoing(subjects.observation(NAME, target), body, id_)

    async def speak(self) -> None:
        """Publish the current health without end: changes at once, and besides, each second, what may be asked for."""
        loop, repeats = asyncio.get_running_loop(), count()
        due = loop.time()
        began: float | None = None
        while True:
            told, self._turned = self._turned, set()
            self._bell.clear()
            if loop.time() >= due:
                due = loop.time() + REFRESH_SECONDS
                told = told.union(self.healthy if next(repeats) % ALL_EVERY == 0 else self.followed)
            began = loop.time() if began is None else began
            try:
                await self._bus.publish_all([self.observation(target) for target in sorted(told)])
            except BusError:
                self.refused += 1
                self._turned |= told
                await asyncio.sleep(0.1)
                continue
            if loop.time() - began > CUT_OFF_SECONDS:
                self.cut_off.append(Span(began, loop.time()))
            began = None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._bell.wait()


def _known(body: bytes) -> bytes:
    """Leave out what older code refuses to read, where older code is judged."""
    if not OLD:
        return body
    message = json.loads(body)
    message["data"] = {key: value for key, value in message["data"].items() if key not in NEWER}
    return json.dumps(message).encode()
