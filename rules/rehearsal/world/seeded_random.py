"""Chance as a function: the same seed and path give the same rolls on every machine and in every version of Python."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")
_EIGHT = struct.Struct("<8Q")


class SeededRandom:
    """Rolls for one thing of a world. Each thing has its own, so what becomes of one does not change the others."""

    def __init__(self, *path: object) -> None:
        """`path`: the seed, and what is drawn: `SeededRandom(7, "outages", "service/east/shop/web")`."""
        self._path = path
        self._key = "\0".join(map(str, path)).encode()
        self._count = 0
        self._left: list[int] = []

    def of(self, *path: object) -> SeededRandom:
        """Give the dice of a part."""
        return SeededRandom(*self._path, *path)

    def roll(self) -> float:
        """Give a number from 0 up to 1."""
        if not self._left:
            digest = blake2b(self._key + b"\0" + str(self._count).encode()).digest()
            self._left = list(_EIGHT.unpack(digest))
            self._count += 1
        return (self._left.pop() >> 11) / (1 << 53)

    def chance(self, share: float) -> bool:
        """True with the probability `share`, from 0 to 1."""
        return self.roll() < share

    def pick(self, items: Sequence[Item]) -> Item:
        """Give one of these."""
        return items[int(self.roll() * len(items))]

    def between(self, least: float, most: float) -> float:
        """Give a number of seconds, in quarters: JSON and floats keep those exactly."""
        return round((least + (most - least) * self.roll()) * 4) / 4
