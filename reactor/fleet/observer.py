"""The observer role: sources, shared among all processes that observe.

Each source runs in one process: two that saw one target differently would contradict each other without end. Who runs
what follows from who is there. A process whose heartbeat is not taken has to believe that others have taken its
sources: it says nothing more until it is heard again. But it goes on looking: where the sources are still its own
then, as after an outage of the bus, it knows what happened meanwhile. One that is alone goes on speaking.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from reactor.fleet.fleet import LOOK, Fleet
from reactor.runtime.supervise import ended

log = logging.getLogger(__name__)

KIND = "observer"
Start = Callable[[], Sequence[asyncio.Task[None]]]
"""Starts a source; its tasks run until they are cancelled."""


class Observer:
    """The sources of this process."""

    def __init__(self, fleet: Fleet, jobs: Mapping[str, Start]) -> None:
        """`jobs`: all sources of the rule files by name; the fleet shares as many."""
        self._fleet = fleet
        self._jobs = dict(sorted(jobs.items()))
        self._running: dict[str, Sequence[asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Observe until cancelled."""
        names = list(self._jobs)
        async with self._fleet.joined():
            try:
                while True:
                    if self._fleet.present:
                        await self._take({names[number] for number in self._fleet.wanted()})
                    await self._fleet.changed(LOOK)
            finally:
                await self._take(set())

    async def _take(self, wanted: set[str]) -> None:
        for name in sorted(self._running.keys() - wanted):
            log.info("a source is left to another process", extra={"source": name})
            await ended(*self._running.pop(name))
        for name in sorted(wanted - self._running.keys()):
            self._running[name] = self._jobs[name]()
