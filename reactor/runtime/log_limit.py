"""Bounds how often one kind of line is logged, and says how many were left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass
class _Line:
    logged_at: float
    left_out: int = 0


class LogLimit:
    """Admits at most one line of each key in `seconds`; beyond `keys_max` keys at a time, all others share one key."""

    def __init__(self, seconds: float, keys_max: int, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._keys_max = keys_max
        self._monotonic = monotonic
        self._lines: dict[Hashable, _Line] = {}

    def due(self, key: Hashable) -> int | None:
        """Give how many lines of this key were left out since its last one; None: this one is left out too."""
        now = self._monotonic()
        if key not in self._lines and len(self._lines) >= self._keys_max:
            key = self._make_room(key, now)
        line = self._lines.get(key)
        if line is not None and now - line.logged_at < self._seconds:
            line.left_out += 1
            return None
        self._lines[key] = _Line(now)
        return line.left_out if line is not None else 0

    def _make_room(self, key: Hashable, now: float) -> Hashable:
        """Forget what was last logged long ago. Give the key, or the shared one where there is still no room."""
        for old in [old for old, line in self._lines.items() if now - line.logged_at >= self._seconds]:
            del self._lines[old]
        return key if len(self._lines) < self._keys_max else None
