"""What each process says of itself on the bus: its roles, the rules it goes by, and why it did not take newer ones.

Read by `reactor fleet` and `reactor status`. Whoever answers on its `alive` subject is there; a key that nobody answers
for was left behind by a process that was killed.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bus import subjects
from bus.errors import Unavailable
from bus.port import Bus
from bus.topology import LEASES

log = logging.getLogger(__name__)

KIND = "process"
AGAIN_SECONDS = 30.0
"""How often it is said again: the bus may have lost it."""
ASK = timedelta(seconds=1)
PROBLEMS_MAX = 20


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as it last said."""

    name: str
    roles: tuple[str, ...]
    rules: str
    """The digest of the rules that it goes by."""
    since: datetime
    """Since when it goes by them."""
    problems: tuple[str, ...] = ()
    """Why the rule files on its disk cannot be used; empty: they are what it goes by."""

    def dump(self) -> bytes:
        """Give it as JSON."""
        return json.dumps(self.shown()).encode()

    def shown(self) -> dict[str, Any]:
        """Give it for people and pipelines."""
        return {
            "name": self.name, "roles": list(self.roles), "rules": self.rules, "since": self.since.isoformat(),
            "problems": list(self.problems),
        }  # fmt: skip

    @classmethod
    def read(cls, body: bytes) -> Process:
        """Read what `dump` gave."""
        said = json.loads(body)
        since = datetime.fromisoformat(said["since"])
        return cls(said["name"], tuple(said["roles"]), said["rules"], since, tuple(said["problems"]))


class Presence:
    """Says who we are for as long as `run` runs."""

    def __init__(self, bus: Bus, process: Process) -> None:
        self._bus = bus
        self._process = process
        self._changed = asyncio.Event()

    def say(self, process: Process) -> None:
        """From now on this is so."""
        self._process = process
        self._changed.set()

    async def run(self) -> None:
        """Say it until cancelled; then take it back."""
        store, key = self._bus.store(LEASES), subjects.key(KIND, self._process.name)
        stop_answering = await self._bus.answer(subjects.alive(KIND + self._process.name))
        try:
            while True:
                self._changed.clear()
                await store.put(key, self._process.dump(), revision=None)
                await self._wait()
        finally:
            await stop_answering()
            try:
                await store.delete(key, revision=None)
            except Unavailable as error:
                log.info("could not say that we leave: %s", error)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(AGAIN_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return


def few(problems: Sequence[str]) -> tuple[str, ...]:
    """Give the first of many problems: the log has them all."""
    if len(problems) <= PROBLEMS_MAX:
        return tuple(problems)
    return (*problems[:PROBLEMS_MAX], f"and {len(problems) - PROBLEMS_MAX} more")


async def present(bus: Bus) -> Sequence[Process]:
    """Give the processes that are there, by name. Raises Unavailable."""
    said = [Process.read(entry.value) for entry in await bus.store(LEASES).entries(f"{KIND}.>")]
    answers = await asyncio.gather(*(bus.ask(subjects.alive(KIND + one.name), ASK) for one in said))
    return sorted(_alive(zip(said, answers, strict=True)), key=lambda one: one.name)


def _alive(asked: Iterable[tuple[Process, bool | None]]) -> list[Process]:
    # None: no answer in time, of one that is slow or stopped: it is still there.
    return [process for process, answer in asked if answer is not False]
