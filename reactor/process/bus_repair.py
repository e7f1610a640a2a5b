"""Looks again and again whether all that the reactor keeps on the bus is still there, and creates again what was lost.

A stream or a queue that was deleted from outside is no error to a process that waits for its messages: it waits
without end, though the server refuses each request for work; so a refusal is a reason to look. The same with a queue
that a person paused: it is resumed. Only what is missing is made. What is there in another form is left to the next
start: two versions of the reactor side by side would change it back and forth.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from bus.errors import BusError
from bus.jetstream import JetStreamBus, provision
from bus.jetstream.provisioning import paused, plan, resume
from bus.port import StreamBounds
from bus.topology import DELAYED, EXECUTORS, FACTS, PARKED_POSTS, ROUTERS, Queue
from reactor.process.session import agree_on_partitions
from reactor.runtime.errors import ReactorError, SettingsError
from reactor.settings.bus_settings import BusSettings

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
UNSERVED_SECONDS = 1.0
"""Seconds between two looks because the server refuses work: it does so also whenever it elects a leader."""
QUEUES: Mapping[str, Sequence[Queue]] = {"router": (ROUTERS, PARKED_POSTS, DELAYED), "executor": (EXECUTORS,)}
"""Queues that each role takes from, and so may resume."""
INIT = "run reactor bus init where this process may not make it"


class BusReconciler:
    """Keeps streams, buckets, queues and the agreed number of partitions there while `run` runs."""

    def __init__(self, bus: JetStreamBus, settings: BusSettings, roles: Iterable[str] = QUEUES) -> None:
        self._bus = bus
        self._settings = settings
        self._queues = [queue for role in roles for queue in QUEUES.get(role, ())]
        self._doubt = asyncio.Event()
        self._looked_at = -inf
        """Begin of the last look, in seconds of the event loop's clock."""
        self.lacking: Sequence[str] = ()
        """Streams and buckets that are missing and could not be made, or cannot be used, at the last look."""
        self.paused: Sequence[str] = ()
        """Queues that were paused at the last look."""
        self._told: Sequence[str] = ()
        """Value of `lacking` when it was last logged."""
        self._facts: StreamBounds | None = None
        self._wakers: set[Callable[[], None]] = set()

    def look_now(self) -> None:
        """Something failed that should not: look before the minute is over."""
        self._doubt.set()

    def unserved(self) -> None:
        """The server refused a request for work: its queue may be gone. Requests go on, and so this is called again."""
        if asyncio.get_running_loop().time() - self._looked_at >= UNSERVED_SECONDS:
            self._doubt.set()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when the stream of facts was created again, or ends before where it ended, until the function
        that is given back is called."""
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)

    async def run(self) -> None:
        """Look every LOOK_SECONDS, whenever the connection came or went, and when work is refused.

        Raises BusError, SettingsError: call it again.
        """
        forget = self._bus.connection.watch(self._doubt.set)
        self._bus.connection.on_unserved = self.unserved
        try:
            if self._facts is None:
                self._doubt.set()  # from here on it is known what is there
            while True:
                await self._wait_for_doubt()
                self._doubt.clear()
                self._looked_at = asyncio.get_running_loop().time()
                try:
                    await self.look()
                except (BusError, ReactorError):
                    self._doubt.set()  # until it has succeeded
                    raise
        finally:
            forget()

    async def look(self) -> None:
        """Look once, and make what is missing. Raises Unavailable, WrongServer, SettingsError."""
        steps = await plan(self._bus, replicas=self._settings.replicas)
        found = [str(step) for step in steps if step.wrong or step.new]
        self.lacking = [f"{one} ({INIT})" for one in found]
        if found and found != self._told:
            log.error(
                "what the reactor keeps on the bus was lost, and is created again", extra={"lost": "; ".join(found)}
            )
        self._told = found
        if found:
            await provision(self._bus, replicas=self._settings.replicas, only_missing=True)
        await self._compare_facts(missed=any(step.new and step.name == FACTS.name for step in steps))
        try:
            await agree_on_partitions(self._bus, self._settings.partitions)
        except SettingsError as error:
            self.lacking = [str(error)]
            raise
        self.lacking = ()
        await self._resume()

    async def _resume(self) -> None:
        found = await paused(self._bus, self._queues)
        if found and not self.paused:
            log.error("%s", "; ".join(found.values()))
        self.paused = [*found.values()]
        for queue in found:
            await resume(self._bus, queue)

    async def _compare_facts(self, *, missed: bool) -> None:
        """`missed`: this look found no stream of facts, which is known also where it is the first."""
        before, self._facts = self._facts, await self._bus.extent(FACTS)
        same = before is None or (self._facts.created == before.created and self._facts.last >= before.last)
        if same and not missed:
            return
        log.warning("the bus has lost facts: all that the sources of this process know is published again")
        for wake in [*self._wakers]:
            wake()

    async def _wait_for_doubt(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._doubt.wait()
        except TimeoutError:
            return
