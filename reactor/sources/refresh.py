"""Answering those who need to know how a target is now: what was seen since they asked from, or a look of its own.

The decider that needs the answer asks again every second until it has come, so that a request that cannot be answered
now is only noted: it is answered by the first look that shows the target.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from pydantic import ValidationError

from bus import subjects
from bus.errors import Unavailable
from bus.messages import RefreshRequest
from bus.port import Bus
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.sources.republisher import Doubted, Republisher, SeenEach, never_doubted

AHEAD_SECONDS_MAX = 1.0
"""Seconds by which the clock of a requester may be ahead of ours: its moment is waited for."""
AGAIN_SECONDS = 1.0
"""A bus that is away when a source starts is asked again after this."""

log = logging.getLogger(__name__)

RefreshHandler: TypeAlias = Callable[[RefreshRequest], Coroutine[Any, Any, None]]
Requests: TypeAlias = Callable[[str, RefreshHandler], Awaitable[None]]
"""Hands all requests to the source of this name to the handler, until it is cancelled."""
Unlisted: TypeAlias = Callable[[Collection[str]], None]
"""Takes the targets of a request of which the source says nothing."""
LookAgain: TypeAlias = Callable[[datetime], None]
"""Requests a look that begins at this moment or later; several requests are answered by one look."""


async def no_requests(source: str, handle: RefreshHandler) -> None:
    """Ignore the subscription: without a bus there are no requests."""


def ignore_unlisted(_: Collection[str]) -> None:
    """Say nothing: a source that does not know a target may not be the one that is meant."""


class RefreshRequests:
    """Requests that come over a bus, and those of this process for what it sees itself, which need no bus."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._here: dict[str, list[RefreshHandler]] = defaultdict(list)
        """Handlers of the sources that run here; one may have two publishers, as NodeWatch has for nodes and for
        zones."""
        self._asking: set[asyncio.Task[None]] = set()

    async def hear(self, source: str, handle: RefreshHandler) -> None:
        """Hand all requests to the source of this name to the handler, until cancelled: `Requests`."""

        async def handled(body: bytes) -> None:
            try:
                request = RefreshRequest.model_validate_json(body)
            except ValidationError as error:
                telemetry.source_errors.labels(source, "BadRequest").inc()
                log.warning("a refresh request cannot be read", extra={"source": source, "reason": str(error)})
                return
            await handle(request)

        self._here[source].append(handle)
        stop = None
        try:
            stop = await _listening(self._bus, subjects.refresh(source), handled, self._clock)
            while True:
                await self._clock.sleep(3600)
        finally:
            self._here[source].remove(handle)
            if stop is not None:
                await stop()

    async def ask(self, source: str, request: RefreshRequest) -> None:
        """Ask a source, wherever it runs. Raises Unavailable."""
        handles = self._here[source]
        if not handles:
            await self._bus.notify(subjects.refresh(source), request.model_dump_json(by_alias=True).encode())
        for handle in handles:
            task = asyncio.create_task(handle(request))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)


async def _listening(
    bus: Bus, subject: str, handled: Callable[[bytes], Awaitable[None]], clock: Clock
) -> Callable[[], Awaitable[None]]:
    while True:
        try:
            return await bus.listen(subject, handled)
        except Unavailable:
            await clock.sleep(AGAIN_SECONDS)


async def answer_requests(
    source: str,
    standing: Republisher[Any],
    seen: SeenEach,
    look_again: LookAgain,
    requests: Requests,
    clock: Clock,
    doubted: Doubted = never_doubted,
    absent: Unlisted = ignore_unlisted,
) -> None:
    """Answer with the current state, until cancelled."""

    async def handle(request: RefreshRequest) -> None:
        now = clock.now()
        not_before = min(request.not_before, now + timedelta(seconds=AHEAD_SECONDS_MAX))
        if not_before > now:
            await clock.sleep((not_before - now).total_seconds())
        if unknown := [target for target in request.targets if standing.get(target) is None]:
            absent(unknown)
        if await standing.ask(request.targets, not_before, seen, doubted):
            look_again(not_before)

    await requests(source, handle)
