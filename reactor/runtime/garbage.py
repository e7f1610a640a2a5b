"""Short pauses of the garbage collector, and few of them.

A full collection looks at every object there is: with 20,000 alerts and 10,000 groups it holds the process for half a
second, several times while they come in. So what has survived one is not looked at again by the next ones; once an hour
everything is, since what is in a circle would never be freed else. And the young ones are looked at seldom: each time
costs as much as what is in use among them, which with CPython's threshold of 700 was 7 % of a mass failure's CPU.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping
from typing import Any

from reactor.runtime import telemetry

THAW_SECONDS = 3600.0
THRESHOLDS = (10_000, 2, 10)
"""Objects that are made, and not freed, from one collection of the young ones to the next: 10 ms of work in a mass
failure. Then, of how many of these collections each older generation is part: with 10 in the place of 2, one would take
up to 70 ms (measured on a busy machine)."""
_FULL = 2


class ShortPauses:
    """`run` while they shall be short."""

    def __init__(self) -> None:
        self._began = 0.0

    async def run(self) -> None:
        """Keep them short until cancelled."""
        gc.callbacks.append(self._on_collection)
        before = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        try:
            while True:
                await asyncio.sleep(THAW_SECONDS)
                gc.unfreeze()
        finally:
            gc.callbacks.remove(self._on_collection)
            gc.set_threshold(*before)
            if gc.isenabled():  # else the process ends
                gc.unfreeze()

    def _on_collection(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
            return
        telemetry.gc_pause.labels(str(info["generation"])).observe(time.perf_counter() - self._began)
        if info["generation"] == _FULL:
            gc.freeze()  # all of it is in use: the best moment


def stop_collecting() -> None:
    """Look at no object any more, as the process ends: the system takes its memory back at once.

    Else collections in the stop, and the interpreter's own at the end, look at all there is: 13 s for 400,000
    objects on a busy machine, in which no deadline is heard.
    """
    gc.disable()
    gc.freeze()
