"""Requests for looks that a decision lacks: on the core subject of the source, again while the look is missing.

They are stored nowhere. A request that is lost, or that comes while a source changes hands, is sent again with the next
decision of the group, a second later.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from bus import subjects
from bus.errors import Unavailable
from bus.messages import RefreshRequest
from bus.port import Bus
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from rules.engine.evidence import ASK_AGAIN, Lack

log = logging.getLogger(__name__)

TARGETS_MAX = 500
"""Most targets that one request names: some 50 kB for usual names."""
REPEATED = ASK_AGAIN / 2
"""The same look is asked for again no sooner: facts that come meanwhile decide the group each time."""


class Refresher:
    """Sends the requests of one partition."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._asked: dict[tuple[str, str], tuple[datetime, datetime]] = {}
        """Source and target: from when on a look was asked for, and when."""
        self._kept_max = 2 * TARGETS_MAX

    async def ask(self, lacks: Iterable[Lack]) -> None:
        """Ask the sources for these looks, each at most twice a second."""
        now = self._clock.now()
        self._forget(now)
        wanted: dict[str, dict[str, datetime]] = defaultdict(dict)
        for lack in lacks:
            if lack.source and lack.since <= now and self._is_news(lack, now):
                self._asked[lack.source, lack.target] = (lack.since, now)
                since = wanted[lack.source].get(lack.target, lack.since)
                wanted[lack.source][lack.target] = max(since, lack.since)
        for source, targets in wanted.items():
            names = sorted(targets)
            for start in range(0, len(names), TARGETS_MAX):
                some = names[start : start + TARGETS_MAX]
                await self._send(source, some, max(targets[name] for name in some))

    async def _send(self, source: str, targets: list[str], not_before: datetime) -> None:
        request = RefreshRequest(targets=tuple(targets), not_before=not_before)
        telemetry.refresh_requests.labels(source).inc()
        try:
            await self._bus.notify(subjects.refresh(source), request.model_dump_json(by_alias=True).encode())
        except Unavailable as error:
            log.info("a source is asked to look again once the bus is back: %s", error, extra={"source": source})

    def _is_news(self, lack: Lack, now: datetime) -> bool:
        since, asked_at = self._asked.get((lack.source, lack.target), (None, None))
        return since is None or asked_at is None or lack.since > since or now - asked_at >= REPEATED

    def _forget(self, now: datetime) -> None:
        if len(self._asked) > self._kept_max:
            old = now - timedelta(seconds=10)
            self._asked = {key: asked for key, asked in self._asked.items() if asked[1] > old}
            self._kept_max = 2 * max(TARGETS_MAX, len(self._asked))  # else all are looked through with each request
