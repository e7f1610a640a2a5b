"""Looks again and again whether all that the reactor keeps on the bus is still there, and makes anew what was lost.

A stream or a queue that somebody deleted is no error to anybody who waits for what comes out of it: they wait for ever.
Only what is missing is made. What is there in another form is left to the next start: two versions of the reactor side
by side would change it back and forth.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from bus.errors import BusError
from bus.jetstream import JetStreamBus, provision
from bus.jetstream.provisioning import plan
from reactor.connecting import agree_on_partitions
from reactor.errors import ReactorError, SettingsError
from reactor.settings import BusSettings

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
INIT = "run reactor bus init where this process may not make it"


class Upkeep:
    """Keeps streams, buckets, queues and the agreed number of partitions there while `run` runs."""

    def __init__(self, bus: JetStreamBus, settings: BusSettings) -> None:
        self._bus = bus
        self._settings = settings
        self._doubt = asyncio.Event()
        self.lacking: Sequence[str] = ()
        """What is missing and could not be made, or cannot be used; as it was at the last look."""

    def look_now(self) -> None:
        """Something failed that should not: look before the minute is over."""
        self._doubt.set()

    async def run(self) -> None:
        """Look each minute, and whenever the connection came or went. Raises BusError, SettingsError: call it again."""
        forget = self._bus.connection.watch(self._doubt.set)
        try:
            while True:
                await self._due()
                self._doubt.clear()
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
        if found:
            log.error("what the reactor keeps on the bus was lost, and is made anew", extra={"lost": "; ".join(found)})
            await provision(self._bus, replicas=self._settings.replicas, only_missing=True)
        try:
            await agree_on_partitions(self._bus, self._settings.partitions)
        except SettingsError as error:
            self.lacking = [str(error)]
            raise
        self.lacking = ()

    async def _due(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._doubt.wait()
        except TimeoutError:
            return
