"""Record of each process on the bus: its roles, the rules it uses, and why it did not take newer ones.

Read by `reactor members` and `reactor status`. A process that answers on its `alive` subject is there. A key whose
process does not answer was left behind by one that was killed. The key is also the right to the name: of two with one
name each would take the other's partitions for its own, so the second does not start.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bus import subjects
from bus.errors import KeyNotFound, Malformed, Refused, Unavailable
from bus.json_text import parsed
from bus.port import Bus, KeyValueEntry
from bus.topology import LEASES
from reactor.runtime.errors import SettingsError

log = logging.getLogger(__name__)

KIND = "process"
AGAIN_SECONDS = 30.0
"""Seconds between two writes of the record: the bus may have lost it."""
ASK = timedelta(seconds=1)
DYING_SECONDS = 8.0
"""Seconds for which a process with our name may take to end: a Pod that comes back may meet its own last moments."""
AGAIN_ASKED_SECONDS = 0.5
PROBLEMS_MAX = 20


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as it last said."""

    name: str
    roles: tuple[str, ...]
    rules: str
    """The digest of the rules that it uses."""
    since: datetime
    """Since when it uses them."""
    problems: tuple[str, ...] = ()
    """Reasons why the rule files on its disk cannot be used; empty: they are in use."""
    version: str = ""
    """Version of the reactor; empty: of a release that did not tell it."""

    def dump(self) -> bytes:
        """Give it as JSON."""
        return json.dumps(self.shown()).encode()

    def shown(self) -> dict[str, Any]:
        """Give it for people and pipelines."""
        return {
            "name": self.name, "version": self.version, "roles": list(self.roles), "rules": self.rules,
            "since": self.since.isoformat(), "problems": list(self.problems),
        }  # fmt: skip

    @classmethod
    def read(cls, body: bytes) -> Process:
        """Read what `dump` gave. Raises Malformed."""
        try:
            said = parsed(body)
            since = datetime.fromisoformat(said["since"])
            version = str(said.get("version", ""))
            return cls(name_in(body), tuple(said["roles"]), said["rules"], since, tuple(said["problems"]), version)
        except (ValueError, KeyError, TypeError) as error:
            raise Malformed(f"{body[:80]!r} says nothing of a process") from error


class Presence:
    """Holds a name while `here` lasts, and publishes the record of this process while `run` runs."""

    def __init__(self, bus: Bus, process: Process) -> None:
        self._bus = bus
        self._process = process
        self._changed = asyncio.Event()
        self._store = bus.store(LEASES)
        self._key = subjects.key(KIND, process.name)
        self._alive = subjects.alive(KIND + process.name)

    def say(self, process: Process) -> None:
        """Set the record of this process."""
        self._process = process
        self._changed.set()

    @asynccontextmanager
    async def here(self) -> AsyncIterator[None]:
        """Have the name while the block runs. Raises SettingsError where another process has it, and Unavailable."""
        stop_answering = await self._take_name()
        try:
            yield
        finally:
            try:
                # First: once this process does not answer, the key may be that of the next one.
                await self._store.delete(self._key, revision=None)
            except Unavailable as error:
                log.info("could not say that we leave: %s", error)
            finally:
                await stop_answering()

    async def run(self) -> None:
        """Say it until cancelled. Raises Unavailable."""
        while True:
            self._changed.clear()
            await self._store.put(self._key, self._process.dump(), revision=None)
            await self._wait()

    async def _take_name(self) -> Callable[[], Awaitable[None]]:
        """Answer for the name, and give how to stop that. Of several that come at once one is first."""
        loop = asyncio.get_running_loop()
        until = loop.time() + DYING_SECONDS
        while True:
            revision = await self._revision()
            answer = await self._bus.is_present(self._alive, ASK)
            if answer is False or (answer is None and loop.time() >= until):  # None: it was stopped
                stop_answering = await self._bus.announce(self._alive)
                if await self._written(revision):
                    return stop_answering
                await stop_answering()
            elif loop.time() >= until:
                raise SettingsError(
                    f"name: another process on this bus is called {self._process.name}: "
                    "give each a name of its own, or none (then it is host name and process id)"
                )
            await asyncio.sleep(AGAIN_ASKED_SECONDS)

    async def _revision(self) -> int:
        try:
            return (await self._store.get(self._key)).revision
        except KeyNotFound:
            return 0

    async def _written(self, revision: int) -> bool:
        try:
            await self._store.put(self._key, self._process.dump(), revision=revision)
        except Refused:
            log.info("another process takes the name %s at the same moment", self._process.name)
            return False
        return True

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(AGAIN_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return


def name_in(body: bytes) -> str:
    """Give the name in what a process or a member says of itself. Raises Malformed."""
    try:
        name = parsed(body)["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"{body[:80]!r} has no name") from error
    if not isinstance(name, str) or not name:
        raise Malformed(f"{body[:80]!r} has no name")
    return name


def few(problems: Sequence[str]) -> tuple[str, ...]:
    """Give the first of many problems: the log has them all."""
    if len(problems) <= PROBLEMS_MAX:
        return tuple(problems)
    return (*problems[:PROBLEMS_MAX], f"and {len(problems) - PROBLEMS_MAX} more")


async def present(bus: Bus) -> Sequence[Process]:
    """Give the processes that are there, by name. Raises Unavailable."""
    said = [*_readable(await bus.store(LEASES).entries(f"{KIND}.>"))]
    answers = await asyncio.gather(*(bus.is_present(subjects.alive(KIND + one.name), ASK) for one in said))
    return sorted(_alive(zip(said, answers, strict=True)), key=lambda one: one.name)


def _readable(entries: Iterable[KeyValueEntry]) -> Iterator[Process]:
    for entry in entries:
        try:
            yield Process.read(entry.value)
        except Malformed as error:
            log.warning("an entry of bucket %s cannot be read: %s", LEASES.name, error, extra={"key": entry.key})


def _alive(asked: Iterable[tuple[Process, bool | None]]) -> list[Process]:
    # None: no answer in time, of one that is slow or stopped: it is still there.
    return [process for process, answer in asked if answer is not False]
