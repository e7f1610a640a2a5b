"""Outages of Prometheus itself. Pure.

A query over the past is always answered; live, the same query would have failed at those moments. The newest scrape
tells: `max(timestamp(up))`. Without it, a dead Prometheus would look like alerts and bad series that end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.value_runs import ChunkResult, Series

NEWEST_SCRAPE = "max(timestamp(up))"


class Outages:
    """The points at which an evaluation would have had no answer."""

    def __init__(self, spans: Iterable[tuple[float, float]] = ()) -> None:
        """`spans`: seconds since 1970, from and up to without; sorted, not overlapping."""
        self.spans = tuple(spans)
        self._begins = [begin for begin, _ in self.spans]

    def at(self, second: float) -> bool:
        """True if Prometheus was away."""
        place = bisect_right(self._begins, second) - 1
        return place >= 0 and second < self.spans[place][1]

    def within(self, chunk: Chunk, part: range) -> Iterator[range]:
        """Give the points of a part of a chunk at which it was away."""
        for begin, end in self.spans:
            first = max(part.start, _point(chunk, begin))
            stop = min(part.stop, _point(chunk, end))
            if first < stop:
                yield range(first, stop)


def _point(chunk: Chunk, second: float) -> int:
    """The first point at or after a moment."""
    return -((chunk.first_ms - round(second * 1000)) // chunk.step_ms)


def outages(chunks: Iterable[tuple[Chunk, range, ChunkResult]], stale_seconds: float) -> Outages | None:
    """Find where the newest scrape was older than `stale_seconds`. None: there was never a scrape to be seen.

    A server that scrapes nothing (a ruler, a store of another kind) has no `up`: then gaps cannot be found.
    """
    seen = False
    spans: list[tuple[float, float]] = []

    def away(second: float, until: float) -> None:
        if spans and spans[-1][1] >= second:
            spans[-1] = (spans[-1][0], until)
        else:
            spans.append((second, until))

    for chunk, part, answer in chunks:
        newest = {index: value for one in answer.series for index, value in _each(one)}
        step = chunk.step_ms / 1000
        for index in part:
            second = chunk.second(index)
            scraped = newest.get(index)
            seen |= scraped is not None
            if scraped is None or second - scraped > stale_seconds:
                away(second, second + step)
    return Outages(spans) if seen else None


def _each(series: Series) -> Iterator[tuple[int, float]]:
    for start, length, value in zip(series.starts, series.lengths, series.values, strict=True):
        for index in range(start, start + length):
            yield index, value
