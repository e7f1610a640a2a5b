"""Looking at few Services alone: what a watch shows of them is compared with what the server says of them now.

A LIST of all slices takes the longer the larger the cluster is, and an act waits for it (decision 21). The slices of
few Services are read in one round trip. Where they are as the watch has shown them, the copy was true when they were
asked for. Where they are not, and where many Services are asked for, all are listed. Where the answer takes long, all
are listed beside it: what is known first counts.

Who acts on a failure at once, without a window, asks from the very moment at which it was found, and is answered by
what the watch had shown then: the failure is no newer either, and such a rule has no time for a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from itertools import groupby

from reactor.clients.changes import ObjectKey, key_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.watching import WatchApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable, Terminal
from reactor.sources.kubernetes.endpoints import SERVICE_LABEL, ServiceName, project_slice, service_of
from reactor.sources.refresh import LookAgain

ALONE_MAX = 100
"""Most Services that are read alone. Beside 4,600 slices and 50 ms for each answer of the API, 100 routes that were to
move at once took 6.3 to 7.2 s after their windows when all slices were listed for them, and 3.0 to 4.0 s so."""
NAMES_MAX = 50
"""Most Services that one LIST of their namespace names: their names take up to 3.3 kB of its address."""
ALONE_SECONDS = 1.0
"""Seconds to wait for the answers before all are listed as well. A slow API server answers both as late, and what is
read alone was asked for before."""
GIVEN_UP_SECONDS = 4.0
"""Seconds after which an answer is not waited for any more. Until then no other Services are read alone."""
KEPT = timedelta(seconds=10)
"""Time for which a look at a Service alone is remembered: no act rests on older ones."""

log = logging.getLogger(__name__)

WatchedSlices = Callable[[ServiceName], Mapping[ObjectKey, JsonObject]]
"""Gives the slices of a Service as the watch has shown them, projected."""


class ServiceLooks:
    """The single looks of one source."""

    def __init__(
        self,
        api: WatchApi,
        clock: Clock,
        selector: str | None,
        *,
        wanted: Callable[[], Mapping[ServiceName, datetime] | None],
        shown: WatchedSlices,
        failed_at: Callable[[datetime], bool],
        list_all: LookAgain,
        seen: Callable[[], Awaitable[None]],
    ) -> None:
        """`wanted`: gives the Services that are asked for and not seen yet, and from when on; None: only a LIST of all
        will do.

        `failed_at`: tells whether a Service was found Unhealthy at this very moment. `list_all`: asks for a LIST.
        `seen`: called when some of them have been seen.
        """
        self._api = api
        self._clock = clock
        self._selector = selector
        self._wanted, self._shown, self._failed_at = wanted, shown, failed_at
        self._list_all, self._told = list_all, seen
        self._seen_at: dict[ServiceName, datetime] = {}
        self._kept_max = 2 * ALONE_MAX
        self._not_before: datetime | None = None
        self._asked = asyncio.Event()

    def seen_at(self, name: ServiceName) -> datetime | None:
        """Begin of the newest look at this Service alone that found it as the watch had shown it, or moment of the
        failure from which on it was asked for; None: there was neither."""
        return self._seen_at.get(name)

    def look_again(self, not_before: datetime) -> None:
        """Have what is asked for seen, by looks that begin at this moment or later, when those under way have ended."""
        self._not_before = max(not_before, self._not_before or not_before)
        self._asked.set()

    async def run(self) -> None:
        """Look when it is asked for, until cancelled."""
        late: asyncio.Task[bool] | None = None  # a look at some alone, of which the answer takes long
        async with asyncio.TaskGroup() as looks:
            while True:
                await self._asked.wait()
                await asyncio.sleep(0)  # who asks in the same moment is answered together
                self._asked.clear()
                not_before, self._not_before = self._not_before, None
                if not_before is None:
                    continue
                wanted = self._wanted()
                names = None if wanted is None else await self._not_shown(wanted)
                if names is not None and not names:
                    continue
                if names is None or len(names) > ALONE_MAX or (late is not None and not late.done()):
                    self._list_all(not_before)
                    continue
                look = late = looks.create_task(self._look_at(sorted(names), not_before))
                await asyncio.wait({look}, timeout=ALONE_SECONDS)
                if not look.done() or not look.result():
                    self._list_all(not_before)

    async def _look_at(self, names: Sequence[ServiceName], not_before: datetime) -> bool:
        """Read these alone. True if all of them were found as the watch had shown them."""
        began = self._clock.now()
        spaces = [
            (one, some[start : start + NAMES_MAX])
            for one, some in ((one, [*some]) for one, some in groupby(names, key=lambda name: name.namespace))
            for start in range(0, len(some), NAMES_MAX)
        ]
        try:
            async with asyncio.timeout(GIVEN_UP_SECONDS):
                same = await asyncio.gather(*(self._as_shown(one, some) for one, some in spaces))
        except TimeoutError:
            return False
        if began < not_before or self._clock.standstill.ended_at > began:
            return False
        found = [name for some in same for name in some]
        self._remember(dict.fromkeys(found, began))
        await self._told()
        return len(found) == len(names)

    async def _not_shown(self, wanted: Mapping[ServiceName, datetime]) -> Set[ServiceName]:
        """Answer those who asked from the moment of a failure. Gives the Services that others ask for."""
        shown = {name: moment for name, moment in wanted.items() if self._failed_at(moment)}
        if shown:
            self._remember(shown)
            await self._told()
        return wanted.keys() - shown.keys()

    def _remember(self, seen: Mapping[ServiceName, datetime]) -> None:
        self._seen_at |= seen
        if len(self._seen_at) > self._kept_max:
            now = self._clock.now()
            self._seen_at = {name: at for name, at in self._seen_at.items() if now - at < KEPT}
            self._kept_max = 2 * max(ALONE_MAX, len(self._seen_at))  # else all are looked through with each look

    async def _as_shown(self, namespace: str, names: Sequence[ServiceName]) -> list[ServiceName]:
        """Give those of these that the server has as they were shown; all are of this namespace."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        label = f"{SERVICE_LABEL} in ({','.join(name.name for name in names)})"
        query = {"labelSelector": f"{self._selector},{label}" if self._selector else label}
        found: dict[ServiceName, dict[ObjectKey, JsonObject]] = {name: {} for name in names}
        try:
            page = await self._api.page(path, query)
            for one in map(project_slice, page.items):
                name, key = service_of(one), key_of(one)
                if name in found and key is not None:
                    found[name][key] = one
        except (Retryable, Terminal, ValueError, AttributeError) as error:
            log.debug("not seen alone", extra={"cluster": self._api.cluster, "path": path, "reason": str(error)})
            return []
        return [name for name in names if not page.token and found[name] == self._shown(name)]
