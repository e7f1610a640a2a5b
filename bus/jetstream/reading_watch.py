"""Looks after all readings of a connection: a reading by itself only waits.

A consumer that fell silent is found by the moment at which its next heartbeat is due at the latest. One that is paused
from outside, or gives another filter, sends its heartbeats as before. So every LOOK_SECONDS each stream is asked how
far it reaches. Where all up to there has come to one of our readings, none of them lacks anything: one question for
each stream, and none for each reading. Else each reading asks for itself (`look`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from bus.errors import Unavailable

LOOK_SECONDS = 4.0
GRACE_SECONDS = 2.0  # what is stored comes within milliseconds; a busy machine may take longer
SILENT_SECONDS_MIN = 0.1  # so often, at most, readings are woken whose consumer is silent

Api = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class WatchedReading(Protocol):
    """The part of a reading that the watch uses."""

    stream: str
    subject: str

    @property
    def silent_at(self) -> float | None:
        """Time at which its consumer counts as silent, on the event loop's clock; None: it has none to wait for."""
        ...

    @property
    def doubtful(self) -> bool:
        """True if it has to ask for itself, whatever came to others."""
        ...

    def came(self, after: int) -> Set[int]:
        """The sequences that came to it after this one. May lack some."""
        ...

    def wake(self) -> None:
        """Let it look at its consumer now."""
        ...

    async def look(self) -> None:
        """Compare what came with what is stored, and replace a consumer that stalls. Raises nothing of the bus."""
        ...


@dataclass(slots=True)
class _StreamLook:
    readings: list[WatchedReading] = field(default_factory=list)
    changed: bool = True
    """True if readers came or went since they were compared."""
    apart: bool = False
    """True if no subject is under the filters of two of them, but for those that have the same one."""
    proven: int = 0
    """Up to here nothing is missing."""
    created: str = ""

    def are_apart(self) -> bool:
        if self.changed:
            subjects = {reading.subject for reading in self.readings}
            self.apart = all(_are_apart(*two) for two in itertools.combinations(subjects, 2))
            self.changed = False
        return self.apart


class ReadingWatch:
    """The readings of one connection, while there are any."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._streams: dict[str, _StreamLook] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, reading: WatchedReading) -> None:
        """Watch this reading from now on."""
        stream = self._streams.setdefault(reading.stream, _StreamLook())
        stream.readings.append(reading)
        stream.changed = True
        if not self._tasks:
            self._tasks = [asyncio.create_task(loop()) for loop in (self._waking, self._looking)]

    def remove(self, reading: WatchedReading) -> None:
        """Leave it to itself."""
        stream = self._streams.get(reading.stream)
        if stream is None or reading not in stream.readings:
            return
        stream.readings.remove(reading)
        stream.changed = True
        if not stream.readings:
            del self._streams[reading.stream]
        if not self._streams:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def _waking(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            readings = [reading for stream in self._streams.values() for reading in stream.readings]
            silent = [(at, reading) for reading in readings if (at := reading.silent_at) is not None]
            for at, reading in silent:
                if at <= now():
                    reading.wake()
            next_at = min((at for at, _ in silent), default=now() + LOOK_SECONDS)
            await asyncio.sleep(min(max(next_at - now(), SILENT_SECONDS_MIN), LOOK_SECONDS))

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.gather(*(self._look(name, stream) for name, stream in [*self._streams.items()]))

    async def _look(self, name: str, stream: _StreamLook) -> None:
        """Raises nothing: of a stream that is not there, its readings tell."""
        try:
            info = await self._api(f"STREAM.INFO.{name}", {})
        except Unavailable:
            return
        last, created = info["state"]["last_seq"], info["created"]
        same = created == stream.created and last >= stream.proven
        complete = same and (_complete(stream, last) or await self._came_late(stream, last))
        asking = [reading for reading in stream.readings if not complete or reading.doubtful]
        await asyncio.gather(*(reading.look() for reading in asking))
        stream.proven, stream.created = last, created

    async def _came_late(self, stream: _StreamLook, last: int) -> bool:
        await asyncio.sleep(GRACE_SECONDS)
        return _complete(stream, last)


def _complete(stream: _StreamLook, last: int) -> bool:
    """True if each message since the last look has come to all readings of ours that it is for."""
    if last == stream.proven:
        return True
    if not stream.are_apart():
        return False
    by_subject: dict[str, Set[int]] = {}
    for reading in stream.readings:
        came = reading.came(stream.proven)
        by_subject[reading.subject] = by_subject.get(reading.subject, came) & came
    came_in_all = {sequence for came in by_subject.values() for sequence in came if sequence <= last}
    return len(came_in_all) == last - stream.proven


def _are_apart(one: str, other: str) -> bool:
    """True if no subject is under both of these filters."""
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if ">" in (left, right):
            return False
        if left != right and "*" not in (left, right):
            return True
    return False
