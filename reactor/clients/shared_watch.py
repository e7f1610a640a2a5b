"""One watch of a whole cluster in place of many of its namespaces.

Each source lists and watches the namespace that it is about. Above NAMESPACES_MAX namespaces of one kind the watches
are served from one that sees all of them: its lines are passed on by namespace. A watch that begins gets first what has
happened since the version that it names, from what the shared watch has kept; where that is not known any more the
answer is Expired, as a server's would be, and it lists again. The shared watch's orderly end is passed on as the end
of each, and so is its failure. Where we may not watch the whole cluster, each namespace is watched by itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple

from reactor.clients.changes import key_of, parsed_event, version_of
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden
from reactor.clients.watching import Expired

NAMESPACES_MAX = 10
"""Most namespaces of one kind that are watched each by itself."""
REFUSED_SECONDS = 600.0
"""Seconds after a 403 until a watch of the whole cluster is asked for again."""
WATCH_SECONDS = 3
"""Seconds for which the shared watch is asked for: as reflectors do, for the same reason."""
SHORT_SECONDS = 2.0
"""Seconds below which a watch is not served by the shared one: its reader needs to list soon, and cannot wait for its
end."""
YOUNG_SECONDS = 1.5
"""Seconds before the end of the shared watch within which a new reader does not end with it: a watch that ends at once
counts as failed."""
KEPT_EVENTS = 2000
WAITING_MAX = 10_000  # lines that one reader has not taken

_NAMESPACED = re.compile(r"(?P<base>.*)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[^/]+)")
_DECIMAL = re.compile(r"[0-9]+")

log = logging.getLogger(__name__)

ByteLines = AsyncIterator[bytes]
Open = Callable[[str, Mapping[str, str], float], AbstractAsyncContextManager[ByteLines]]
"""Opens a watch of its own: path, query, idle seconds."""


class _WatchLine(NamedTuple):
    version: int
    namespace: str | None
    """Namespace of the events; None: all namespaces."""
    line: bytes


class _NamespaceWatch:
    """One namespace's part of a shared watch."""

    def __init__(self, namespace: str, version: int, now: float) -> None:
        self.namespace = namespace
        self.version = version
        self.began = now
        self._waiting: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def offer(self, event: _WatchLine) -> None:
        """Pass an event on, if it is one of this namespace that it has not seen."""
        if event.namespace not in (None, self.namespace) or event.version <= self.version:
            return
        self.version = event.version
        if self._waiting.qsize() >= WAITING_MAX:
            self.end(ApiUnavailable(f"a watch of namespace {self.namespace} is {WAITING_MAX} events behind"))
        else:
            self._waiting.put_nowait(event.line)

    def confirm(self, bookmark: _WatchLine) -> None:
        """Pass on that all is known up to this version, also where nothing has happened."""
        self.version = max(self.version, bookmark.version)
        self._waiting.put_nowait(bookmark.line)

    def end(self, error: Exception | None) -> None:
        """End it: in an orderly way, or with this error."""
        self._waiting.put_nowait(error)

    async def lines(self) -> ByteLines:
        while True:
            one = await self._waiting.get()
            if one is None:
                return
            if isinstance(one, Exception):
                raise one
            yield one


class _Shared:
    """The watch of one kind and selector in all namespaces, while it has readers."""

    def __init__(self, path: str, query: Mapping[str, str], idle_seconds: float, open_: Open) -> None:
        self._path = path
        self._query = query
        self._idle_seconds = idle_seconds
        self._open = open_
        self._readers: set[_NamespaceWatch] = set()
        self._kept: deque[_WatchLine] = deque()
        self._version = self._floor = int(query["resourceVersion"])
        """resourceVersions: what is later than the floor is kept, or still to come."""
        self.ended = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the server has answered; with Forbidden where we may not."""
        self._task = asyncio.create_task(self._run(), name=f"shared watch {path}")

    @property
    def forbidden(self) -> bool:
        """True if the server has answered that we may not."""
        return self.opened.done() and isinstance(self.opened.exception(), Forbidden)

    def join(self, namespace: str, version: int) -> _NamespaceWatch:
        """Begin to read. Raises Expired where what has happened since this version is not known any more."""
        if version < self._floor:
            raise Expired(f"{self._path}: the shared watch knows nothing before {self._floor}")
        reader = _NamespaceWatch(namespace, version, _now())
        for event in self._kept:
            reader.offer(event)
        self._readers.add(reader)
        return reader

    def leave(self, reader: _NamespaceWatch) -> None:
        self._readers.discard(reader)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while await self._cycle():
                pass
        except Exception as error:  # noqa: BLE001 - each reader gets it
            self._finish(error)
        finally:
            self._finish(ApiUnavailable(f"{self._path}: the shared watch was closed"))

    async def _cycle(self) -> bool:
        """Follow one watch to its orderly end, and end it for all readers. Gives whether it had a reader."""
        query = {**self._query, "resourceVersion": str(self._version), "timeoutSeconds": str(WATCH_SECONDS)}
        async with self._open(self._path, query, self._idle_seconds) as lines:
            if not self.opened.done():
                self.opened.set_result(None)
            read = bool(self._readers)
            async for line in lines:
                self._take(line)
                read = read or bool(self._readers)
        for reader in [*self._readers]:
            reader.confirm(self._bookmark())  # it goes on from here, however quiet its own namespace was
            if _now() - reader.began >= YOUNG_SECONDS:
                self._readers.discard(reader)
                reader.end(None)
        return read

    def _bookmark(self) -> _WatchLine:
        found = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}}
        return _WatchLine(self._version, None, json.dumps(found).encode())

    def _take(self, line: bytes) -> None:
        kind, found = parsed_event(self._path, line)  # raises what the server says, Expired for one
        version = version_of(found)
        if not _DECIMAL.fullmatch(version):
            raise ApiUnavailable(f"{self._path}: resourceVersion {version!r} is no number")
        key = key_of(found)
        if kind == "BOOKMARK" or key is None:
            event = _WatchLine(int(version), None, line)
        else:
            event = _WatchLine(int(version), key.namespace, line)
        self._version = max(self._version, event.version)
        self._kept.append(event)
        if len(self._kept) > KEPT_EVENTS:
            self._floor = self._kept.popleft().version
        for reader in [*self._readers]:
            reader.offer(event)

    def _finish(self, error: Exception) -> None:
        self.ended = True
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # a waiting reader gets it; there need not be one
        readers, self._readers = self._readers, set()
        for reader in readers:
            reader.end(error)


class SharedWatches:
    """The watches of one cluster."""

    def __init__(self, cluster: str, open_: Open) -> None:
        self._cluster = cluster
        self._open = open_
        self._namespaces: dict[tuple[str, str], Counter[str]] = {}
        """Namespaces in which each collection and selector is read, and the number of their readers."""
        self._shared: dict[tuple[str, str], _Shared] = {}
        self._refused_at: dict[tuple[str, str], float] = {}

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], *, idle_seconds: float) -> AsyncIterator[ByteLines]:
        """Give the lines of a watch, as `WatchApi.stream` does."""
        found = _NAMESPACED.fullmatch(path)
        if found is None or "watch" not in query:
            async with self._open(path, query, idle_seconds) as lines:
                yield lines
            return
        which = f"{found['base']}/{found['plural']}", query.get("labelSelector", "")
        with self._reading(which, found["namespace"]) as many:
            shared = await self._joinable(which, query, idle_seconds) if many else None
            if shared is None:
                async with self._open(path, query, idle_seconds) as lines:
                    yield lines
                return
            reader = shared.join(found["namespace"], int(query["resourceVersion"]))
            try:
                yield reader.lines()
            finally:
                shared.leave(reader)

    async def close(self) -> None:
        """End all of them."""
        for shared in self._shared.values():
            await shared.stop()

    @contextmanager
    def _reading(self, which: tuple[str, str], namespace: str) -> Iterator[bool]:
        """Count a reader for as long as the block runs; gives whether there are many namespaces."""
        namespaces = self._namespaces.setdefault(which, Counter())
        namespaces[namespace] += 1
        try:
            yield len(namespaces) > NAMESPACES_MAX
        finally:
            namespaces[namespace] -= 1
            if not namespaces[namespace]:
                del namespaces[namespace]

    async def _joinable(
        self, which: tuple[str, str], query: Mapping[str, str], idle_seconds: float
    ) -> _Shared | None:  # fmt: skip
        """Give the shared watch, opened; None where one of its own is to be opened. Raises what opening it raises."""
        short = float(query.get("timeoutSeconds", 0)) <= SHORT_SECONDS
        if short or not _DECIMAL.fullmatch(query.get("resourceVersion", "")) or self._is_refused(which):
            return None
        shared = self._shared.get(which)
        if shared is None or (shared.ended and not shared.forbidden):  # that is for those who wait to note
            log.info("one watch of the whole cluster", extra={"cluster": self._cluster, "path": which[0]})
            shared = self._shared[which] = _Shared(which[0], query, idle_seconds, self._open)
        try:
            await asyncio.shield(shared.opened)
        except Forbidden as error:
            if self._shared.get(which) is shared:
                del self._shared[which]
                self._refused_at[which] = _now()
                extra = {"cluster": self._cluster, "path": which[0], "reason": str(error)}
                log.info("the whole cluster may not be watched: each namespace is", extra=extra)
            return None
        if shared.ended:
            raise ApiUnavailable(f"{self._cluster}: {which[0]}: the shared watch has just ended")
        return shared

    def _is_refused(self, which: tuple[str, str]) -> bool:
        return _now() - self._refused_at.get(which, float("-inf")) < REFUSED_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
