"""A key-value bucket: the newest message per subject of a stream, written by revision.

nats-py's own KeyValue is not used: its keys() and watches cost ten times as much, and its put cannot be tried again.
Reads go to the stream's leader, never to a follower, so that one reads what one wrote.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from bus.errors import KeyNotFound, Refused, StreamRecreated, Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import JetStreamDelivery
from bus.jetstream.lookup import last
from bus.jetstream.ordered_reading import OrderedReading
from bus.jetstream.pending_publish import EXPECTED, PendingPublish
from bus.jetstream.publishing import Publisher
from bus.jetstream.scanning import ScannedReading
from bus.port import KeyValueEntry
from bus.topology import Bucket

MARK = {"KV-Operation": "DEL", "Nats-TTL": "24h"}  # long enough for every watch to see it, not without end
STALL = timedelta(seconds=10)  # nothing came although there is more: a reading replaces its consumer before
QUIET = timedelta(seconds=0.5)  # then it is asked whether there is more
FOREVER = timedelta(hours=1)  # how long a watch waits at once; no caller sees a difference

log = logging.getLogger(__name__)


class KeyValueStore:
    """A `bus.port.Store`."""

    def __init__(self, connection: Connection, publisher: Publisher, bucket: Bucket) -> None:
        self._connection, self._publisher = connection, publisher
        self._stream = f"KV_{bucket.name}"
        self._prefix = f"$KV.{bucket.name}."

    async def get(self, key: str) -> KeyValueEntry:
        """Raises KeyNotFound, Unavailable."""
        newest = await last(self._connection, self._stream, self._prefix + key)
        if newest.removed:
            raise KeyNotFound(key)
        return KeyValueEntry(key, newest.body, newest.sequence, newest.stored_at)

    async def written_at(self, key: str) -> datetime:
        """Time at which the key was last written, by the server's clock. Raises KeyNotFound, Unavailable."""
        newest = await last(self._connection, self._stream, self._prefix + key)
        if newest.removed:
            raise KeyNotFound(key)
        return newest.stored_at

    async def put(self, key: str, value: bytes, *, revision: int | None) -> int:
        """Write if the key is at `revision`. Raises Refused, Unavailable."""
        [result] = await self._write([self._post(key, value, revision)])
        if isinstance(result, Refused):
            raise Refused(f"{key} is not at revision {revision}: {result}")
        return result

    async def put_all(self, writes: Sequence[tuple[str, bytes, int]]) -> Sequence[int | None]:
        """Write many: the new revision for each, None where it was refused. Raises Unavailable."""
        results = await self._write([self._post(*write) for write in writes])
        return [None if isinstance(result, Refused) else result for result in results]

    async def delete(self, key: str, *, revision: int | None) -> None:
        """Remove. No error where there is none. Raises Refused, Unavailable."""
        post = self._post(key, b"", revision)
        mark = post._replace(headers={**post.headers, **MARK})
        if revision is None:
            # Without a look: a write of ours that was given up may be on its way, and the server shows it only once it
            # is stored. The mark comes after it.
            await self._write([mark])
            return
        newest = await last(self._connection, self._stream, self._prefix + key)
        if newest.removed:
            return
        [result] = await self._write([mark])
        if isinstance(result, Refused):
            raise Refused(f"{key} is at revision {newest.sequence}, not at {revision}: {result}")

    async def entries(self, pattern: str) -> Sequence[KeyValueEntry]:
        """All entries under a pattern. Raises Unavailable."""
        return await self._whole(pattern, ScannedReading if self._connection.read_only else OrderedReading)

    async def scan(self, pattern: str) -> Sequence[KeyValueEntry]:
        """All entries under a pattern, one request for each. Raises Unavailable."""
        return await self._whole(pattern, ScannedReading)

    async def created_at(self) -> datetime:
        """Time at which the bucket was created. Raises Unavailable."""
        info = await self._connection.api(f"STREAM.INFO.{self._stream}", {})
        return datetime.fromisoformat(info["created"])

    async def _whole(self, pattern: str, kind: type[ScannedReading | OrderedReading]) -> Sequence[KeyValueEntry]:
        try:
            return await self._standing(pattern, kind)
        except StreamRecreated as error:
            raise Unavailable(f"the value of {pattern} was only half read: {error}") from error

    async def _standing(self, pattern: str, kind: type[ScannedReading | OrderedReading]) -> Sequence[KeyValueEntry]:
        found: dict[str, KeyValueEntry] = {}
        async with kind(self._connection, self._stream, self._prefix + pattern, after=0) as reading:
            until = _in(STALL)
            while not reading.current:
                deliveries = await reading.next(QUIET)
                if not deliveries and await reading.newest() <= reading.position:
                    break  # the server counted what was replaced before it came
                until = _in(STALL) if deliveries else until
                if asyncio.get_running_loop().time() >= until:
                    raise Unavailable(f"{self._stream} did not come to an end of {pattern}")
                for one in deliveries:
                    change = self._change(one)
                    if isinstance(change, KeyValueEntry):
                        found[change.key] = change
                    else:
                        found.pop(change, None)
                if deliveries and deliveries[-1].pending == 0:
                    break  # what came since is not ours to wait for
        return list(found.values())

    @asynccontextmanager
    async def watch(self, pattern: str) -> AsyncIterator[AsyncIterator[KeyValueEntry | str]]:
        """All entries under a pattern, then each change; where the bucket was created again, those of the new one."""
        async with OrderedReading(self._connection, self._stream, self._prefix + pattern, after=0) as reading:
            yield self._changes(reading)

    async def _changes(self, reading: OrderedReading) -> AsyncIterator[KeyValueEntry | str]:
        while True:
            try:
                changes = await reading.next(FOREVER)
            except StreamRecreated as error:
                log.warning("reason=Wiped reading from the first: %s", error)
                await reading.start_over()
                continue
            for one in changes:
                yield self._change(one)

    def _change(self, one: JetStreamDelivery) -> KeyValueEntry | str:
        key = one.subject.removeprefix(self._prefix)
        body = one.body if one.published else b""  # cannot be read, so it is quarantined
        return key if one.removed else KeyValueEntry(key, body, one.sequence, one.stored_at)

    def _post(self, key: str, value: bytes, revision: int | None) -> PendingPublish:
        headers = {"Nats-Msg-Id": self._publisher.new_id()}
        if revision is not None:
            headers[EXPECTED] = str(revision)
        return PendingPublish(self._prefix + key, value, headers)

    async def _write(self, posts: Sequence[PendingPublish]) -> list[int | Refused]:
        results = await self._publisher.send_together(posts)
        for index, (post, result) in enumerate(zip(posts, results, strict=True)):
            if isinstance(result, Refused):
                results[index] = await self._look_again(post, result)
        return results

    async def _look_again(self, post: PendingPublish, refused: Refused) -> int | Refused:
        """Refused may be wrong: it was ourselves who wrote, or the key was removed and only its mark has a revision."""
        newest = await last(self._connection, self._stream, post.subject)
        if post.headers[EXPECTED] != "0" or not newest.removed:
            return newest.settle(post, refused)
        headers = {**post.headers, "Nats-Msg-Id": self._publisher.new_id(), EXPECTED: str(newest.sequence)}
        [result] = await self._publisher.send([post._replace(headers=headers)])
        return result


def _in(time: timedelta) -> float:
    """The moment `time` from now on the event loop's clock."""
    return asyncio.get_running_loop().time() + time.total_seconds()
