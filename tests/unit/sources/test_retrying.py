"""Pauses of `retry_forever`: a request that is refused may be allowed a moment later."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from reactor.clients.kubernetes_port import NotFound
from reactor.clients.watch_failures import REFUSED_SECONDS
from reactor.sources.kubernetes.retrying import retry_forever
from tests.clock import HandClock

TRIES = 50


def test_what_is_not_served_is_asked_for_again_before_an_action_is_late() -> None:
    """A CRD that is installed again is seen within these seconds, however long it was away."""
    clock, asked = HandClock(), list[float]()

    async def call() -> str:
        asked.append(clock.monotonic())
        if len(asked) < TRIES:
            raise NotFound("east: install its CRDs")
        return "there"

    found = retry_forever(call, clock, source="routes", what="routes", where={"cluster": "east"})
    assert asyncio.run(found) == "there"
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert len(waits) == TRIES - 1
    assert round(max(waits), 6) <= REFUSED_SECONDS
