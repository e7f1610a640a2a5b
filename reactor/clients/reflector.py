"""A copy of a collection of Kubernetes objects that stays true: list, then watch, without end.

It survives what real API servers and the networks before them do: 410 Gone, cut connections, watches that end at once
(a proxy that answers 200 and nothing else), stalls, 429 and 5xx with Retry-After, HTML instead of JSON, half a line.
A watch that broke is followed by a LIST: the server may have been restored meanwhile, and would not say so. So is one
that sends an object as it was before. After a relist, the difference to what was known is told as one batch, so that no
rule decides on half of it.

What is known of the objects is in `object_copy.py`, how a LIST is read in pages in `paged_list.py`, how long is waited
after a failure, and what is logged of it, in `watch_failures.py`.

`seen` says until when the server has shown that the copy is true, or that it cannot be believed now. A source dates
what it repeats accordingly, and falls silent where nothing confirms it: silence is what makes a target Unknown. An
event, a bookmark and the orderly end of a watch show it for the moment at which they came. `proven` is the moment at
which the newest LIST was asked for: a watch may be seconds behind what the server has stored, so an event shows what
has changed, and proves nothing that has not. A LIST that lacks most of what was there, or what is there when it is read
alone, is doubted (`doubt.py`). After a standstill of this process only a new LIST is proof.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime
from math import ceil, inf

from reactor.clients.changes import (
    ObjectChange,
    ObjectKey,
    ReadInterval,
    is_earlier,
    key_of,
    parsed_event,
    version_of,
)
from reactor.clients.doubt import AGAIN_SECONDS, Doubt
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, NotFound
from reactor.clients.object_copy import Listing, ObjectCopy, Project
from reactor.clients.paged_list import items, pages
from reactor.clients.read_alone import found_alone
from reactor.clients.watch_failures import WatchFailures
from reactor.clients.watching import Expired, WatchApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable, Terminal
from reactor.runtime.retry_backoff import RetryBackoff
from reactor.runtime.standstill import NEVER

WATCH_SECONDS = 3.0
"""Seconds for which one watch is asked for. Its orderly end shows that the server is there: a connection that died
says nothing either, and bookmarks come once a minute only."""
SILENT_SECONDS = 1.0
"""A watch that ends so much later than it was asked for is left for a LIST. What a silent watch hides is then seen
within four seconds: in less time than an action may be late."""
RELIST_SECONDS = 40.0
"""Heals what no watch tells: an API server that was restored from a backup, at a lower or a higher resourceVersion.
A watch that is open then ends in time."""
RELIST_SECONDS_EACH = 0.005
"""More for each object: at most 200 of them a second are read for this, and up to 3,000 are read within 55 s."""
REVISION_SECONDS = 20.0
"""Pause between two looks at the server's revision, while the next LIST is further off: a server that was restored from
a backup is at an earlier one, and is so noticed within a minute whatever the number of objects."""
SHORT_SECONDS = 1.0  # a watch that ends sooner has failed: a proxy may answer 200 and close, a thousand times a second
SHORTEST_SECONDS = 2 * SHORT_SECONDS
"""Least seconds for which a watch is asked for. Where a LIST is due before the end of one, it is read now: 200
namespaces would else open as many such watches at once, which are too short to be served by a shared one."""
GRACE_SECONDS = 5.0  # between the end of one watch and the start of the next the copy is still believed
log = logging.getLogger(__name__)

OnChanges = Callable[[Sequence[ObjectChange]], Awaitable[None]]


class Reflector:
    """One collection of one cluster: `run()` without end, `objects` to read, `on_changes` to be told.

    `on_changes` is awaited with the whole difference after each list (empty if there is none) and with one change for
    each event. `project`: as ObjectCopy has it. What either raises is a mistake of ours and ends `run`. `idle_seconds`:
    so long a silent connection is believed, if less than usual. `not_found_max`: so many 404 in a row end `run` as well
    (NotServed): another version may be served by now.
    """

    def __init__(
        self,
        api: WatchApi,
        path: str,
        on_changes: OnChanges,
        *,
        clock: Clock,
        label_selector: str | None = None,
        project: Project = lambda found: found,
        idle_seconds: float = inf,
        relist_seconds: float = RELIST_SECONDS,
        not_found_max: float = inf,
        backoff: RetryBackoff | None = None,
    ) -> None:
        self._api = api
        self._path = path
        self._clock = clock
        self._on_changes = on_changes
        self._selector = {"labelSelector": label_selector} if label_selector else {}
        self._idle_seconds = min(idle_seconds, WATCH_SECONDS + SILENT_SECONDS)
        self._watch_seconds = max(min(WATCH_SECONDS, self._idle_seconds * 3 / 4), SHORTEST_SECONDS)
        self._relist_seconds = relist_seconds
        self._failures = WatchFailures(api.cluster, path, backoff, not_found_max)
        self._copy = ObjectCopy(self._where, project)
        self._version: str | None = None  # None: list before anything else
        self._listed_at = 0.0
        self._revision_at = 0.0  # when the server's revision was looked at last, on the event loop's clock
        self._heard_at: float | None = None  # last proof that the copy was true, on the event loop's clock
        self._opened_at: float | None = None  # of the watch that is open now
        self._watching: asyncio.Task[None] | None = None
        self._telling = False
        self._broken = False
        """True if a watch has broken since the last LIST: the server may be another one by now, restored from a backup,
        which tells nothing of what it has lost."""
        self._list_began = NEVER  # of the newest LIST that was believed
        self._proven = NEVER
        self._not_before: datetime | None = None  # a look is wanted that begins at this moment or later
        self._doubt = Doubt(api.cluster, path)
        self.look = ReadInterval(clock.now(), clock.now())
        """Newest moment at which the server showed that the copy was true."""
        self.synced = asyncio.Event()
        """Set for good after the first whole list has been told."""

    @property
    def path(self) -> str:
        """Path of the collection."""
        return self._path

    @property
    def objects(self) -> Mapping[ObjectKey, JsonObject]:
        """Objects that exist now, projected, by namespace and name."""
        return self._copy.objects

    @property
    def seen(self) -> datetime | None:
        """Time up to which the copy is known to be true; None: that is too long ago to be believed."""
        if self._heard_at is None or self._outdated:
            return None
        age = _now() - self._heard_at
        open_ = self._opened_at is not None and _now() - self._opened_at >= SHORT_SECONDS
        return self.look.began if age < (self._idle_seconds if open_ else GRACE_SECONDS) else None

    @property
    def proven(self) -> datetime | None:
        """Time up to which a LIST has proven the copy; None where `seen` is."""
        return self._proven if self.seen is not None else None

    @property
    def change(self) -> ReadInterval:
        """Look that found what is told by `on_changes`. That of an event begins with the newest LIST: an event shows
        what has changed, and may be too late to prove what has not."""
        return self.look._replace(began=self._proven)

    def seen_of(self, key: ObjectKey) -> datetime | None:
        """The same of one object; None as well where a LIST that is not believed lacks it."""
        return None if key in self._doubt.keys else self.seen

    def proven_of(self, key: ObjectKey) -> datetime | None:
        """The same of one object; None as well where `seen_of` is."""
        return None if key in self._doubt.keys else self.proven

    def believed(self, key: ObjectKey) -> JsonObject | None:
        """Give an object, projected; None where there is none, or where it cannot be believed now."""
        return self._copy.get(key) if self.seen_of(key) is not None else None

    @property
    def doubted(self) -> Set[ObjectKey]:
        """The objects that a LIST lacks which is not believed."""
        return self._doubt.keys

    @property
    def connected(self) -> bool:
        """True if the copy can be believed: a watch is open, or was until a moment ago."""
        return self.seen is not None

    @property
    def relist_seconds(self) -> float:
        """Seconds from a LIST until the next one is due."""
        return self._relist_seconds + RELIST_SECONDS_EACH * len(self._copy)

    def look_again(self, not_before: datetime) -> None:
        """Have the collection listed as soon as possible, by a LIST that begins at this moment or later.

        One LIST for all that is asked until it begins. `on_changes` is awaited, with no changes if there are none.
        """
        self._not_before = max(not_before, self._not_before or not_before)
        if self._watching is not None and not self._telling:
            self._watching.cancel()

    @property
    def _outdated(self) -> bool:
        """True if this process was stopped since the last LIST: what a watch sends afterwards may be as old as that."""
        return self._clock.standstill.ended_at > self._list_began

    def _thawed(self) -> None:
        if self._watching is not None and not self._telling:
            self._watching.cancel()

    async def run(self) -> None:
        """Keep the copy true until cancelled. Errors of the API are logged once, counted, and tried again.

        Raises NotServed, where that was asked for.
        """
        forget = self._clock.standstill.watch(self._thawed)
        try:
            await self._run()
        finally:
            forget()

    async def _run(self) -> None:
        while True:
            began = _now()
            try:
                if await self._was_restored():
                    self._version = None
                while self._must_list(began):
                    await self._list()
                    began = _now()
                if await self._watched(self._seconds_to_watch(began)) and _now() - began < SHORT_SECONDS:
                    raise ApiUnavailable(f"{self._where}: the watch ended at once")
            except (Retryable, Terminal) as error:
                wait = self._failures.failed(error, lasted=_now() - began)
                if isinstance(error, Expired | NotFound) or (self._failures.cannot_watch(error) and self._may_list):
                    self._version = None
                await asyncio.sleep(wait)
            else:
                self._failures.succeeded()

    def _must_list(self, now: float) -> bool:
        due = AGAIN_SECONDS if self._doubt.keys else max(self.relist_seconds - SHORTEST_SECONDS, SHORTEST_SECONDS)
        wanted = self._not_before is not None or self._outdated or (self._broken and self._may_list)
        return self._version is None or wanted or now - self._listed_at >= due

    async def _was_restored(self) -> bool:
        """Look, now and then, if the server is at an earlier revision than one that it has shown."""
        now = _now()
        is_soon_listed = self._listed_at + self.relist_seconds - now <= REVISION_SECONDS
        if self._version is None or is_soon_listed or now - max(self._listed_at, self._revision_at) < REVISION_SECONDS:
            return False
        self._revision_at = now
        page = await self._api.page(self._path, {"limit": "1", **self._selector})
        return is_earlier(page.version, self._version)

    @property
    def _may_list(self) -> bool:
        """True if the last LIST was so long ago that no more objects a second are read than for healing."""
        return _now() - self._listed_at >= RELIST_SECONDS_EACH * len(self._copy)

    async def _watched(self, seconds: float) -> bool:
        """Follow one watch, asked for so long. Gives whether it ended by itself, and not because a look is wanted."""
        self._watching = asyncio.create_task(self._watch(ceil(seconds)))
        try:
            await self._watching
        except asyncio.CancelledError:
            current = asyncio.current_task()
            wanted = self._not_before is not None or self._outdated
            if not wanted or (current is not None and current.cancelling()):
                self._watching.cancel()
                raise
            return False
        finally:
            self._watching = None
        if self._not_before is not None or self._outdated:
            return False
        self._shown()
        return True

    def _shown(self, look: ReadInterval | None = None) -> None:
        """Take note that the server has shown that the copy is true: at this moment, if no other is given."""
        if look is None:
            now = self._clock.now()
            look = ReadInterval(now, now)
        self._heard_at, self.look = _now(), look

    async def _list(self) -> None:
        """Read everything, tell the difference to what was known."""
        listing, version, look = Listing(), "", ReadInterval(self._clock.now(), self._clock.now())
        async for page in pages(self._api, self._path, self._selector):
            if not version:
                look = ReadInterval(look.began, self._clock.now())  # all pages show one state, that of the first
            version = page.version
            if not self._copy.take_known_page(page.digest, listing):
                await self._copy.take_page(page.digest, items(self._api, self._path, page), listing)
        if self._clock.standstill.ended_at > look.began:
            return  # how old this is, is not known: it is listed again at once
        lacking = self._copy.keys - listing.found.keys()
        present = await found_alone(self._api, self._path, self._selector.get("labelSelector"), lacking)
        kept = self._doubt.listed(self._copy.keys, listing.found.keys(), _now(), present=present)
        changes = self._copy.take_list(listing, kept)
        self._version, self._listed_at, self._list_began, self._broken = version, _now(), look.began, False
        self._shown(look)
        self._proven = look.began
        self._failures.listed()
        if self._not_before is not None and look.began >= self._not_before:
            self._not_before = None
        await self._tell(changes)
        self.synced.set()

    async def _watch(self, seconds: int) -> None:
        """Follow one watch to its end."""
        query = {
            "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": self._version or "",
            "timeoutSeconds": f"{seconds}", **self._selector,
        }  # fmt: skip
        async with self._api.stream(self._path, query, idle_seconds=self._idle_seconds) as lines:
            self._opened_at = _now()
            try:
                async for line in lines:
                    if self._outdated:
                        return
                    kind, found = parsed_event(self._where, line)
                    self._copy.must_be_newer(found)
                    self._shown()
                    self._telling = True
                    await self._event(kind, found)
                    self._telling = False
                    self._failures.recovered()
                    if self._not_before is not None:
                        return
            except (Retryable, Terminal):
                self._broken = True
                raise
            finally:
                self._opened_at, self._telling = None, False

    def _seconds_to_watch(self, now: float) -> float:
        left = AGAIN_SECONDS if self._doubt.keys else self._listed_at + self.relist_seconds - now
        return max(min(self._watch_seconds, left), SHORTEST_SECONDS)

    async def _event(self, kind: str, found: JsonObject) -> None:
        version, key = version_of(found), key_of(found)
        # Of what the last LIST lacks, it is not known what became of it before the watch that begins there.
        unbroken = key not in self._doubt.keys
        if key is not None:
            self._doubt.seen(key)
        if changes := await self._copy.take_event(kind, found, unbroken=unbroken):
            await self._tell(changes)
        if is_earlier(version, self._version or ""):
            self._broken = True  # a bookmark of a server that was restored: the copy is of a later time
        elif version:
            self._version = version

    async def _tell(self, changes: Sequence[ObjectChange]) -> None:
        try:
            await self._on_changes(changes)
        except (Retryable, Terminal) as error:
            # Not an error of this API: taken for one, the change would be lost, and no log would say so.
            raise RuntimeError(f"{self._where}: a change could not be passed on: {error}") from error

    @property
    def _where(self) -> str:
        return f"{self._api.cluster}: GET {self._path}"


def _now() -> float:
    """Seconds on the event loop's clock: for measuring durations."""
    return asyncio.get_running_loop().time()
