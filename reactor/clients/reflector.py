"""A copy of a collection of Kubernetes objects that stays true: list, then watch, for ever.

It survives what real API servers and the networks before them do: 410 Gone, cut connections, watches that end at once
(a proxy that answers 200 and nothing else), stalls, 429 and 5xx with Retry-After, HTML instead of JSON, half a line.
After a relist, the difference to what was known is told as one batch, so that nobody decides on half of it.

`vouched` says how long ago the server last proved that the copy is true, or that it cannot be believed now. A source
dates what it repeats accordingly, and falls silent where nobody vouches for it: silence is what makes a target Unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from reactor import telemetry
from reactor.clients.backoff import Backoff
from reactor.clients.changes import Change, Key, Kind, key_of, parsed_event, version_of
from reactor.clients.port import ApiUnavailable, JsonObject, NotFound
from reactor.clients.watching import Expired, WatchApi
from reactor.errors import Retryable, Terminal

PAGE_OBJECTS = 500  # client-go's page size
MAX_PAGES = 2000  # a million objects: more is a server that never stops saying "continue"
WATCH_SECONDS = 15.0
"""So long one watch is asked for. Its orderly end is the server's word that nothing else has happened: a connection
that died says nothing either, and bookmarks come once a minute only. So the copy is never older unnoticed."""
RELIST_SECONDS = 900.0  # heals what no watch tells: an API server that was restored from a backup
SHORT_SECONDS = 1.0  # a watch that ends sooner has failed: a proxy may answer 200 and close, a thousand times a second
GRACE_SECONDS = 5.0  # between the end of one watch and the start of the next the copy is still believed
GOOD_SECONDS = 30.0  # a failure after so long a good time is a new trouble, and the backoff starts small again
FAILURES_BEFORE_RELIST = 3  # the list may work where the watch does not: then this is slow polling

log = logging.getLogger(__name__)

Project = Callable[[JsonObject], JsonObject]
OnChanges = Callable[[Sequence[Change]], Awaitable[None]]


class NotServed(Exception):
    """The collection is not found, time and again: its version, or its kind, may not be served any more."""


class _Stored(NamedTuple):
    version: str
    object: JsonObject


class Reflector:
    """One collection of one cluster: `run()` for ever, `objects` to read, `on_changes` to be told.

    `on_changes` is awaited with the whole difference after each list (empty if there is none) and with one change for
    each event. `project` makes an object small before it is kept; it must take any JSON object. What either raises is
    a mistake of ours and ends `run`. `idle_seconds`: so long a silent connection is believed, if less than usual.
    `not_found_max`: so many 404 in a row end `run` as well (NotServed): another version may be served by now.
    """

    def __init__(
        self,
        api: WatchApi,
        path: str,
        on_changes: OnChanges,
        *,
        label_selector: str | None = None,
        project: Project = lambda found: found,
        idle_seconds: float = inf,
        relist_seconds: float = RELIST_SECONDS,
        not_found_max: float = inf,
        backoff: Backoff | None = None,
    ) -> None:
        self._api = api
        self._path = path
        self._on_changes = on_changes
        self._selector = {"labelSelector": label_selector} if label_selector else {}
        self._project = project
        self._idle_seconds = min(idle_seconds, WATCH_SECONDS + GRACE_SECONDS)
        self._watch_seconds = max(min(WATCH_SECONDS, self._idle_seconds * 3 / 4), 2 * SHORT_SECONDS)
        self._relist_seconds = relist_seconds
        self._not_found_max = not_found_max
        self._not_found = 0  # in a row
        self._backoff = backoff or Backoff(first_seconds=0.1, most_seconds=30)
        self._stored: dict[Key, _Stored] = {}
        self._version: str | None = None  # None: list before anything else
        self._listed_at = 0.0
        self._heard_at: float | None = None  # last proof that the copy was true, on the event loop's clock
        self._opened_at: float | None = None  # of the watch that is open now
        self._complaint = ""
        self.synced = asyncio.Event()
        """Set for good after the first whole list has been told."""

    @property
    def objects(self) -> Mapping[Key, JsonObject]:
        """What there is now, projected."""
        return {key: stored.object for key, stored in self._stored.items()}

    @property
    def vouched(self) -> float | None:
        """For how many seconds nobody has vouched for the copy; None: for too long to be believed."""
        if self._heard_at is None:
            return None
        age = _now() - self._heard_at
        open_ = self._opened_at is not None and _now() - self._opened_at >= SHORT_SECONDS
        return age if age < (self._idle_seconds if open_ else GRACE_SECONDS) else None

    @property
    def connected(self) -> bool:
        """Whether the copy can be believed: a watch is open, or was until a moment ago."""
        return self.vouched is not None

    async def run(self) -> None:
        """Keep the copy true until cancelled. Errors of the API are logged once, counted, and tried again.

        Raises NotServed, where that was asked for.
        """
        while True:
            began = _now()
            try:
                if self._version is None or began - self._listed_at >= self._relist_seconds:
                    await self._list()
                    began = _now()
                await self._watch()
                if _now() - began < SHORT_SECONDS:
                    raise ApiUnavailable(f"{self._where}: the watch ended at once")
            except (Retryable, Terminal) as error:
                await self._failed(error, lasted=_now() - began)
            else:
                self._heard_at = _now()
                self._backoff.succeeded()
                self._recovered()

    async def _list(self) -> None:
        """Read everything, tell the difference to what was known."""
        found: dict[Key, _Stored] = {}
        changes: list[Change] = []
        version = ""
        async for page in self._pages():
            version = version_of(page)
            for item in page.get("items") or []:
                self._take(item, found, changes)
        changes += [Change(Kind.DELETED, stored.object) for key, stored in self._stored.items() if key not in found]
        self._stored, self._version = found, version
        self._listed_at = self._heard_at = _now()
        self._not_found = 0
        await self._tell(changes)
        self.synced.set()

    async def _pages(self) -> AsyncIterator[JsonObject]:
        query = {"limit": str(PAGE_OBJECTS), **self._selector}
        for _ in range(MAX_PAGES):
            page = await self._api.page(self._path, query)
            if not isinstance(page.get("items"), list | None) or not version_of(page):
                raise ApiUnavailable(f"{self._where} was answered JSON that is no list")
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query["continue"] = token
        raise ApiUnavailable(f"{self._where} gave more than {MAX_PAGES} pages")

    def _take(self, item: object, found: dict[Key, _Stored], changes: list[Change]) -> None:
        key = key_of(item)
        if key is None or not isinstance(item, dict):
            self._skip(item)
            return
        known, version = self._stored.get(key), version_of(item)
        if known is not None and known.version == version:
            found[key] = known
            return
        found[key] = _Stored(version, self._project(item))
        changes.append(Change(Kind.MODIFIED if known else Kind.ADDED, found[key].object))

    async def _watch(self) -> None:
        """Follow one watch to its end."""
        query = {
            "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": self._version or "",
            "timeoutSeconds": f"{self._watch_seconds:.0f}", **self._selector,
        }  # fmt: skip
        async with self._api.stream(self._path, query, idle_seconds=self._idle_seconds) as lines:
            self._opened_at = _now()
            try:
                async for line in lines:
                    kind, found = parsed_event(self._where, line)
                    self._heard_at = _now()
                    await self._event(kind, found)
                    self._recovered()
            finally:
                self._opened_at = None

    async def _event(self, kind: str, found: JsonObject) -> None:
        version, key = version_of(found), key_of(found)
        if kind != "BOOKMARK" and key is None:
            self._skip(found)
        elif kind == Kind.DELETED and key is not None:
            known = self._stored.pop(key, None)
            await self._tell([Change(Kind.DELETED, known.object if known else self._project(found))])
        elif kind in (Kind.ADDED, Kind.MODIFIED) and key is not None:
            self._stored[key] = _Stored(version, self._project(found))
            await self._tell([Change(Kind(kind), self._stored[key].object)])
        if version:
            self._version = version

    async def _tell(self, changes: Sequence[Change]) -> None:
        try:
            await self._on_changes(changes)
        except (Retryable, Terminal) as error:
            # Not an error of this API: taken for one, the change would be lost without anybody noticing.
            raise RuntimeError(f"{self._where}: a change could not be passed on: {error}") from error

    async def _failed(self, error: Retryable | Terminal, *, lasted: float) -> None:
        """Count it, say it once, wait."""
        if lasted > GOOD_SECONDS:
            self._backoff.succeeded()
        self._not_found = self._not_found + 1 if isinstance(error, NotFound) else 0
        if self._not_found >= self._not_found_max:
            raise NotServed(str(error)) from error
        after = error.after if isinstance(error, Retryable) else None
        wait = self._backoff.failed(asked_seconds=after)
        if isinstance(error, Expired | NotFound) or self._backoff.failures % FAILURES_BEFORE_RELIST == 0:
            self._version = None
        reason = type(error).__name__
        telemetry.watch_restarts.labels(self._api.cluster, reason).inc()
        if reason != self._complaint and not isinstance(error, Expired):  # 410 is everyday life, and heals itself
            log.warning("cannot watch, trying again", extra={"cluster": self._api.cluster, "reason": str(error)})
            self._complaint = reason
        await asyncio.sleep(wait)

    def _recovered(self) -> None:
        if self._complaint:
            log.info("watching again", extra={"cluster": self._api.cluster, "path": self._path})
            self._complaint = ""

    def _skip(self, found: object) -> None:
        log.warning("left out an object without a name", extra={"where": self._where, "object": repr(found)[:200]})

    @property
    def _where(self) -> str:
        return f"{self._api.cluster}: GET {self._path}"


def _now() -> float:
    """Seconds on the event loop's clock: for measuring durations."""
    return asyncio.get_running_loop().time()
