"""Watches: every change of a kind, as each client's selectors see it.

A change is offered to each watch of its kind once, matched against both the old and the new object (an object that
leaves a selector is DELETED for that watch), and encoded once for all of them. A client that does not keep up is sent
away, as upstream does, rather than remembered without limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from aiohttp import web

from reactor.demo.kube.broken_connection import reset
from reactor.demo.kube.errors import StatusError, expired
from reactor.demo.kube.faults import CutWatch, EndWatch, FailWatch, TruncateWatch, WatchEffect
from reactor.demo.kube.object_selectors import Filter, parse_filter
from reactor.demo.kube.objects import JsonObject, encode
from reactor.demo.kube.store import Revision, StoreChange

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

BACKLOG_MAX = 10_000  # events waiting for one slow client
_TIMEOUT_SECONDS = 1800  # upstream: --min-request-timeout, when the client names none
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Encoder = Callable[[Revision], bytes]


def seen_through(only: Filter, change: StoreChange) -> tuple[str, Revision] | None:
    """Give the event a watch with this filter sees, or None."""
    was = change.before is not None and only.matches(change.before.value)
    if change.after is not None and only.matches(change.after.value):
        return ("MODIFIED" if was else "ADDED"), change.after
    if was and change.before is not None:
        return "DELETED", change.before.moved_to(change.version)
    return None


class WatchStream:
    """One client's watch."""

    def __init__(self, cluster: EmulatedState, call: ApiRequest, encoder: Encoder) -> None:
        self.call = call
        self._cluster = cluster
        self._encoder = encoder
        self._filter = parse_filter(call.resource, call.namespace, call.name, call.query)
        self._bookmarks = call.flag("allowWatchBookmarks")
        self._lines: deque[bytes] = deque()
        self._late: deque[tuple[float, bytes]] = deque()
        """Events that lag behind, and when each is sent: in their order, whatever the lag is by then."""
        self._wake = asyncio.Event()
        self._interrupted: WatchEffect | None = None
        self._overrun = False

    def interrupt(self, effect: WatchEffect) -> None:
        """End this watch in the given way, after the events that are on their way already."""
        self._interrupted = effect
        self._wake.set()

    def forget(self) -> None:
        """Send nothing of what waits to be sent."""
        self._lines.clear()
        self._late.clear()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream events until the timeout, the client's leaving, or an interruption."""
        collection = self._cluster.store.collection(self.call.resource)
        # No await between reading what is there and listening: nothing is missed, nothing comes twice.
        self._lines.extend(self._beginning())
        collection.listeners.add(self._offer)
        self._cluster.watches.add(self)
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            await self._stream(request, response)
        except ConnectionResetError:
            pass  # the client left: that is how most watches end
        finally:
            collection.listeners.discard(self._offer)
            self._cluster.watches.discard(self)
        return response

    def _offer(self, change: StoreChange) -> None:
        event = seen_through(self._filter, change)
        if event is None:
            return
        line, lag = self._line(*event), self._cluster.watch_lag
        if lag:
            due = asyncio.get_running_loop().time() + lag
            self._send_at(self._cluster.late_changes.setdefault(change.version, due), line)
        else:
            self._late.append((0.0, line))
            self._send_late(inf)

    def _send_at(self, due: float, line: bytes) -> None:
        self._late.append((due, line))
        asyncio.get_running_loop().call_at(due, self._send_late, due)

    def _send_late(self, until: float) -> None:
        while self._late and self._late[0][0] <= until:
            self._send(self._late.popleft()[1])

    def _send(self, line: bytes) -> None:
        if len(self._lines) >= BACKLOG_MAX:
            self._overrun = True
        else:
            self._lines.append(line)
        self._wake.set()

    def _beginning(self) -> Iterator[bytes]:
        call, store = self.call, self._cluster.store
        collection = store.collection(call.resource)
        version = call.number("resourceVersion")
        initial = call.flag("sendInitialEvents")
        if initial and call.query.get("resourceVersionMatch") != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise StatusError(
                422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {text}'
            )
        if initial or not version:
            for _, revision in sorted(collection.objects.items()):
                if self._filter.matches(revision.value):
                    yield self._line("ADDED", revision)
            if initial and self._bookmarks:
                yield self._bookmark({INITIAL_EVENTS_END: "true"})
            return
        try:
            changes = collection.since(version)
        except StatusError as forgotten:
            yield self._error(forgotten)  # upstream says so inside a 200
            self._interrupted = EndWatch()
            return
        for change in changes:
            if (event := seen_through(self._filter, change)) is None:
                continue
            due = self._cluster.late_changes.get(change.version) if self._cluster.watch_lag else None
            if due is None and not self._late:
                yield self._line(*event)
            else:  # late for each watch, also for one that began meanwhile
                self._send_at(due or self._late[-1][0], self._line(*event))

    def _line(self, kind: str, revision: Revision) -> bytes:
        return b'{"type":"' + kind.encode() + b'","object":' + self._encoder(revision) + b"}\n"

    def _bookmark(self, annotations: JsonObject | None = None) -> bytes:
        resource = self.call.resource
        metadata: JsonObject = {"resourceVersion": str(self._cluster.store.version)}
        metadata |= {"annotations": annotations} if annotations else {}
        body: Any = {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": metadata}
        return encode({"type": "BOOKMARK", "object": body}) + b"\n"

    def _error(self, error: StatusError) -> bytes:
        return encode({"type": "ERROR", "object": error.status()}) + b"\n"

    async def _stream(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        every = self._cluster.bookmark_seconds
        ends = loop.time() + (self.call.number("timeoutSeconds") or _TIMEOUT_SECONDS)
        next_bookmark = loop.time() + every
        while True:
            self._wake.clear()
            if self._interrupted is None:
                await self._cluster.events_flow.wait()
            if self._lines:
                lines = b"".join(self._lines)
                self._lines.clear()
                await response.write(lines)
                continue  # more may have come while that was sent
            if self._interrupted is not None:
                await self._end(request, response, self._interrupted)
                return
            if self._overrun:
                return
            now = loop.time()
            if self._bookmarks and now >= min(next_bookmark, ends):
                if not self._late:  # a bookmark is never newer than the events that were sent
                    await response.write(self._bookmark())
                next_bookmark = now + every
            if now >= ends:
                return
            try:
                async with asyncio.timeout_at(min(ends, next_bookmark) if self._bookmarks else ends):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _end(self, request: web.BaseRequest, response: web.StreamResponse, effect: WatchEffect) -> None:
        match effect:
            case CutWatch():
                reset(request)
            case TruncateWatch():
                await response.write(b'{"type":"MODIFIED","object":{"metadata":{"name":"')
                reset(request, gently=True)
            case FailWatch(code=410):
                await response.write(self._error(expired("too old resource version: the history is gone")))
            case FailWatch(code=code):
                text = "an error on the server has prevented the request from succeeding"
                await response.write(self._error(StatusError(code, "InternalError", text)))
            case _:
                return
