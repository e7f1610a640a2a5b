"""Lag of the event loop: one step that computes for long holds up everything else."""

from __future__ import annotations

import asyncio
import logging

from reactor.runtime import telemetry

TICK_SECONDS = 0.25
"""Five times as often cost 60 ms of CPU a minute (measured)."""
HELD_SECONDS = 1.0
"""Seconds of lag from which it is logged, at most once in SAID_AGAIN_SECONDS."""
SAID_AGAIN_SECONDS = 60.0

log = logging.getLogger(__name__)


async def measure() -> None:
    """Measure until cancelled."""
    now, said_at = asyncio.get_running_loop().time, float("-inf")
    while True:
        due = now() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        late = max(0.0, now() - due)
        telemetry.loop_lag.observe(late)
        if late >= HELD_SECONDS and now() - said_at >= SAID_AGAIN_SECONDS:
            said_at = now()
            log.warning("this process was busy, or kept from the processor, for %.1f s", late)
