"""Remembered copies: what a workload looked like while its cluster still answered, for the day when it does not.

Kept as `copy.portable` gives them. Secrets are not kept: who may read the bus need not be who may read Secrets. Where
one is needed and its cluster is dead, another cluster that has it is the source, or it has to be in the target already.
"""

from __future__ import annotations

import json
import zlib
from typing import Protocol

from bus import subjects
from bus.errors import BusError, KeyNotFound
from bus.json_text import parsed
from bus.messages import WorkloadRef
from bus.port import KeyValueEntry, Store
from bus.topology import TEMPLATES
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, Retryable

BYTES_MAX = 768 << 10
"""Most bytes of one stored copy, compressed: under the 1 MB that a NATS server takes in one message by default."""
JSON_BYTES_MAX = 8 << 20  # what etcd takes is 1.5 MB: more is no object, and is not unpacked


class NotKept(ReactorError):
    """The copy is not kept: it is too large, or the bus does not take it."""


class Templates(Protocol):
    """A place for remembered copies."""

    async def get(self, ref: WorkloadRef) -> JsonObject | None:
        """Give the copy; None: there is none. Raises Retryable where the place does not answer."""
        ...

    async def put(self, ref: WorkloadRef, copy: JsonObject) -> bool:
        """Keep the copy, and say whether anything changed by that. Raises NotKept, Retryable."""
        ...


class BusTemplates:
    """Remembered copies in a key-value bucket: one entry for each object, the newest only."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or Clock()

    async def get(self, ref: WorkloadRef) -> JsonObject | None:
        try:
            entry = await self._store.get(_key(ref))
        except KeyNotFound:
            return None
        except BusError as error:
            raise Retryable(f"the remembered copy of {ref.object} cannot be read: {error}") from error
        return _unpacked(entry.value)

    async def put(self, ref: WorkloadRef, copy: JsonObject) -> bool:
        packed = zlib.compress(json.dumps(copy, sort_keys=True, separators=(",", ":")).encode())
        if len(packed) > BYTES_MAX:
            raise NotKept(f"{ref.object} is not remembered: {len(packed)} bytes, at most {BYTES_MAX}")
        try:
            known = await self._known(ref)
            if known is not None and known.value == packed and not self._old(known):
                return False
            # The last writer is right: both have read the same cluster a moment ago.
            await self._store.put(_key(ref), packed, revision=None)
        except BusError as error:
            raise Retryable(f"{ref.object} cannot be remembered now: {error}") from error
        return known is None or known.value != packed

    async def _known(self, ref: WorkloadRef) -> KeyValueEntry | None:
        try:
            return await self._store.get(_key(ref))
        except KeyNotFound:
            return None

    def _old(self, known: KeyValueEntry) -> bool:
        """True if the bus forgets it soon unless it is written again: older than a tenth of the bucket's max_age."""
        return known.written_at is not None and self._clock.now() - known.written_at > TEMPLATES.max_age / 10


def _key(ref: WorkloadRef) -> str:
    return subjects.key(ref.namespace, ref.kind, ref.name, ref.api_version)


def _unpacked(packed: bytes) -> JsonObject | None:
    """Give what was packed; None where it was written by something else: then nothing is remembered."""
    unpack = zlib.decompressobj()
    try:
        text = unpack.decompress(packed, JSON_BYTES_MAX)
        found = parsed(text) if unpack.eof else None
    except (zlib.error, ValueError):
        return None
    return found if isinstance(found, dict) else None
