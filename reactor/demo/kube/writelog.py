"""Every write to every cluster, in the order in which it took effect: the truth that chaos tests compare against.

A write is recorded at the moment it is carried out or refused, before any fault can lose its answer. A cluster's first
namespaces and definitions are there from its beginning and are not writes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

WRITES_MAX = 1_000_000  # a long chaos run makes some thousands; past this the oldest go


@dataclass(frozen=True, slots=True)
class LoggedWrite:
    """One write as a server saw it."""

    sequence: int
    """Counts over all clusters, from 1."""
    at: float
    """The event loop's monotonic time, in seconds."""
    cluster: str
    verb: str
    """create, update, patch, delete or deletecollection; an eviction is a create of subresource `eviction`."""
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    manager: str
    patch_type: str
    """The media type of a patch; "" for other verbs."""
    body: Any
    before: str
    """The object's resourceVersion before; "" when there was no object."""
    after: str
    """Its resourceVersion afterwards; that of the deletion when it went."""
    effective: bool
    """True if anything changed: False for a no-op, a dry run and a refusal."""
    code: int


class WriteLog:
    """The writes of one emulator, oldest first."""

    def __init__(self) -> None:
        self._writes: deque[LoggedWrite] = deque(maxlen=WRITES_MAX)
        self._numbers = itertools.count(1)

    def next_number(self) -> int:
        return next(self._numbers)

    def append(self, write: LoggedWrite) -> None:
        self._writes.append(write)

    def clear(self) -> None:
        """Forget what was written so far, for instance while a test set its scene; numbers go on."""
        self._writes.clear()

    def effective(self, resource: str = "", *, cluster: str = "", manager: str = "") -> list[LoggedWrite]:
        """Give the writes that changed something, narrowed to a plural, a cluster or a field manager."""
        return [
            write
            for write in self._writes
            if write.effective
            and resource in ("", write.resource)
            and cluster in ("", write.cluster)
            and manager in ("", write.manager)
        ]

    def __iter__(self) -> Iterator[LoggedWrite]:
        return iter(tuple(self._writes))

    def __len__(self) -> int:
        return len(self._writes)
