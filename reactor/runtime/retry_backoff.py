"""Delays between retries: doubling, jittered, capped, and reset after a good while."""

from __future__ import annotations

import random
from collections.abc import Callable

_MAX_DOUBLINGS = 16  # beyond it only the cap counts, and the power stays a small number


def _spread() -> float:
    return random.uniform(0.5, 1.5)  # noqa: S311 - spreads load over time, guards no secret


class RetryBackoff:
    """Waits for one thing that is tried again and again."""

    def __init__(self, *, first_seconds: float, most_seconds: float, spread: Callable[[], float] = _spread) -> None:
        self._first = first_seconds
        self._most = most_seconds
        self._spread = spread
        self.failures = 0
        """Number of failures in a row."""

    def failed(self, *, asked_seconds: float | None = None) -> float:
        """Count a failure and give the seconds to wait: never less than the other side asked for, up to the cap."""
        doublings = min(self.failures, _MAX_DOUBLINGS)
        self.failures += 1
        own = min(self._most, self._first * 2.0**doublings) * self._spread()
        return max(own, min(asked_seconds or 0.0, self._most))

    def succeeded(self) -> None:
        """Start from the first wait again."""
        self.failures = 0
