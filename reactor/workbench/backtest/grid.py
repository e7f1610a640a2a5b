"""The moments at which a query is evaluated, and the chunks in which they are fetched. Pure.

Moments are whole multiples of the step since 1970, and chunks whole multiples of CHUNK_POINTS: the same chunk is asked
for whenever the same query is, so that it can be kept on disk. Milliseconds, as whole numbers: Prometheus's resolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_POINTS = 2_880
"""A day at 30 s. Prometheus refuses more than 11,000 points a series; one quarter keeps an answer with many series
small."""
CHUNKS_MAX = 20_000
"""Most chunks of one query: 50 years at 30 s."""


class TooLong(ValueError):
    """The range has too many steps: says what to do."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a grid."""

    first_ms: int
    step_ms: int
    points: int

    @property
    def last_ms(self) -> int:
        """Its last moment, which belongs to it."""
        return self.first_ms + (self.points - 1) * self.step_ms

    def second(self, index: int) -> float:
        """The moment of a point, in seconds since 1970."""
        return (self.first_ms + index * self.step_ms) / 1000

    @property
    def whole(self) -> bool:
        """True if it has all its points: no later moment belongs into it."""
        return self.points == CHUNK_POINTS


@dataclass(frozen=True, slots=True)
class Grid:
    """The moments of a range."""

    from_ms: int
    to_ms: int
    """Belongs to the range."""
    step_ms: int
    now_ms: int
    """Time after which nothing can be asked for."""

    def chunks(self) -> Iterator[Chunk]:
        """Give the chunks that hold the range, in order; they may begin before it and end after it.

        Raises TooLong.
        """
        width = CHUNK_POINTS * self.step_ms
        count = self.to_ms // width - self.from_ms // width + 1
        if count > CHUNKS_MAX:
            raise TooLong(
                f"{count:,} chunks of {CHUNK_POINTS:,} steps: ask for a shorter range, or for a longer --step"
            )
        for number in range(self.from_ms // width, self.to_ms // width + 1):
            first = number * width
            points = min(CHUNK_POINTS, (self.now_ms - first) // self.step_ms + 1)
            if points > 0:
                yield Chunk(first, self.step_ms, points)

    def part(self, chunk: Chunk) -> range:
        """Give the points of a chunk that lie in the range."""
        before = -((chunk.first_ms - self.from_ms) // self.step_ms)  # rounded up: none lies before the range
        return range(max(0, before), min(chunk.points, (self.to_ms - chunk.first_ms) // self.step_ms + 1))
