"""Says things to the log once in a while: Alertmanager repeats itself, our log need not."""

from __future__ import annotations

from collections.abc import Hashable

from reactor.runtime.clock import Clock

AGAIN_SECONDS = 3600.0
KEYS_MAX = 1000  # a sender of ever new nonsense costs log lines then, not memory


class LogThrottle:
    """`if seldom(key): log…` is true the first time, and again after AGAIN_SECONDS."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[Hashable, float] = {}

    def __call__(self, key: Hashable) -> bool:
        now = self._clock.monotonic()
        if now - self._said.get(key, float("-inf")) < AGAIN_SECONDS:
            return False
        if len(self._said) >= KEYS_MAX:
            self._said.clear()
        self._said[key] = now
        return True
