"""Store of all alert states: kept in the bucket, mirrored in memory, changed by compare-and-set only.

Any number of processes share the bucket. Each follows its changes, so that each knows all alerts of a target when it
publishes its health, and each write names the revision that it rests on, so that no process undoes another's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime

from bus.errors import KeyNotFound, Refused, Unavailable
from bus.port import KeyValueEntry, Store
from reactor.alerts.cache import AlertCache, CachedState
from reactor.alerts.states import AlertState
from reactor.runtime.slices import paused, sliced

log = logging.getLogger(__name__)

WRITES_AT_ONCE = 512
"""The server syncs what comes together at once: 5,000 states take 1.8 s so, and 10 s with 64 at a time (measured)."""
ROUNDS_MAX = 16  # each round another writer was faster; that often in a row means that something is wrong
FOLLOW_AGAIN_SECONDS = 1.0

Change = Callable[[AlertState | None], AlertState | None]
"""Gives the new state for a known one; None: it is removed, or stays away. Called again where another process was
faster."""


class AlertStore:
    """Store of all alert states. `async with` it: reads the bucket, then follows it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alert_cache = AlertCache()
        self._created_at: datetime | None = None
        """Time at which the bucket was created that was last read."""
        self._lost: dict[str, AlertState] = {}
        """States of a bucket that was wiped, until they are in the next one."""
        self._reading = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()  # posts of one group, taken at once, would only refuse each other

    async def __aenter__(self) -> AlertStore:
        """Read the bucket, so that a restart forgets nothing. Raises Unavailable."""
        await self.read()
        self._following = asyncio.create_task(self._follow(), name="alerts-ledger")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def read(self) -> None:
        """Read the whole bucket: at the start, and after a time in which changes may have been missed.

        Where it was created again, what was in the one before is written into it. Raises Unavailable.
        """
        async with self._reading:
            created_at = await self._store.created_at()
            entries = await self._store.entries(">")
            if self._created_at not in (None, created_at):
                self._lost |= dict(self.alert_cache.items())
                log.warning(
                    "the alerts bucket was lost: what is remembered of %d alerts is stored again", len(self._lost)
                )
                for key in [*self.alert_cache.keys()]:
                    self.alert_cache.forget(key)  # also revisions: they count from 1 again
            self._created_at = created_at
            for key in self.alert_cache.keys() - {entry.key for entry in entries}:
                self.alert_cache.forget(key)
            async for entry in sliced(entries):
                self.alert_cache.apply(entry)
            if self._lost:
                await self.change({key: _newer(state) for key, state in self._lost.items()})
                self._lost = {}

    async def look_for_another(self) -> None:
        """Read the bucket if it was created again, which its watch does not tell. Raises Unavailable."""
        if self._lost or await self._store.created_at() != self._created_at:
            await self.read()

    def check(self) -> None:
        """Raise what ended the following, if anything did: without it we would go on with what we knew then."""
        if self._following and self._following.done():
            self._following.result()

    async def change(self, changes: Mapping[str, Change]) -> None:
        """Change many states, WRITES_AT_ONCE at a time. Raises Unavailable; what was written by then stays."""
        keys = sorted(changes)
        for start in range(0, len(keys), WRITES_AT_ONCE):
            async with self._one_at_a_time:
                await self._change({key: changes[key] for key in keys[start : start + WRITES_AT_ONCE]})
            await asyncio.sleep(0)

    async def _change(self, changes: Mapping[str, Change]) -> None:
        for _ in range(ROUNDS_MAX):
            wanted = {key: change(self.alert_cache.held(key).state) for key, change in changes.items()}
            refused = await self._write({key: state for key, state in wanted.items() if self._differs(key, state)})
            if not refused:
                return
            await asyncio.gather(*(self._read_one(key) for key in refused))
            changes = {key: changes[key] for key in refused}
        raise Unavailable(f"{len(changes)} alert states were written by another process {ROUNDS_MAX} times in a row")

    def _differs(self, key: str, state: AlertState | None) -> bool:
        return state != self.alert_cache.held(key).state

    async def _write(self, wanted: Mapping[str, AlertState | None]) -> list[str]:
        """Write by compare-and-set and give the keys at which another process was faster."""
        puts = [(key, state, self.alert_cache.held(key).revision) for key, state in wanted.items() if state]
        bodies = [(key, state.model_dump_json().encode(), revision) for key, state, revision in puts]
        revisions = await self._store.put_all(bodies) if bodies else []
        refused = [key for key, state in wanted.items() if state is None and not await self._delete(key)]
        for (key, state, _), revision in zip(puts, revisions, strict=True):
            if revision is None:
                refused.append(key)
            else:
                self.alert_cache.keep(key, CachedState(state, revision))
        return refused

    async def _delete(self, key: str) -> bool:
        try:
            await self._store.delete(key, revision=self.alert_cache.held(key).revision)
        except Refused:
            return False
        self.alert_cache.forget(key)
        return True

    async def _read_one(self, key: str) -> None:
        try:
            self.alert_cache.apply(await self._store.get(key))
        except KeyNotFound:
            self.alert_cache.forget(key)

    async def _follow(self) -> None:
        while True:
            try:
                async with self._store.watch(">") as changes, aclosing(paused(changes)) as one_by_one:
                    async for change in one_by_one:
                        if isinstance(change, KeyValueEntry):
                            self.alert_cache.apply(change)
                        else:
                            self.alert_cache.forget(change)
            except Unavailable as error:
                log.warning("the alerts bucket cannot be followed", extra={"reason": str(error)})
            await asyncio.sleep(FOLLOW_AGAIN_SECONDS)
            await self._read_again()

    async def _read_again(self) -> None:
        """Removals that happened while the bucket was not followed are seen only by reading all."""
        try:
            await self.read()
        except Unavailable as error:
            log.warning("the alerts bucket cannot be read", extra={"reason": str(error)})


def _newer(lost: AlertState) -> Change:
    def change(state: AlertState | None) -> AlertState | None:
        return lost if state is None or state.told_at < lost.told_at else state

    return change


def fold(changes: Iterable[Change]) -> Change:
    """Several changes of one state as one, in their order."""
    steps = list(changes)

    def all_of_them(state: AlertState | None) -> AlertState | None:
        for step in steps:
            state = step(state)
        return state

    return all_of_them
