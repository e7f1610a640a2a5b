"""A query's answer for one chunk, as runs of equal values: most of what is measured does not change most of the time.

Prometheus writes numbers so that they can be read back exactly, so eight bytes lose nothing of its text.
"""

from __future__ import annotations

import json
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby, islice, repeat
from operator import ne
from typing import Any

from reactor.workbench.backtest.grid import Chunk

_MAGIC = b"reactor-backtest-1\n"
_DIGEST_BYTES = 32


class Corrupt(ValueError):
    """The bytes on the disk are not those that were written."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series: at the points from `starts[i]` on, for `lengths[i]` points, it was `values[i]`."""

    labels: Mapping[str, str]
    starts: array[int]
    lengths: array[int]
    values: array[float]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Give the points at which the series was there: from, and up to without."""
        for begin, end in self.pieces(0, len(self.starts)):
            yield self.starts[begin], self.stop(end - 1)

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Cut these runs, given by their numbers, into pieces without a gap."""
        for run in range(begin + 1, end):
            if self.starts[run] != self.stop(run - 1):
                yield begin, run
                begin = run
        if begin < end:
            yield begin, end

    def stop(self, run: int) -> int:
        """The point after the last one of a run."""
        return self.starts[run] + self.lengths[run]

    def within(self, part: range) -> tuple[int, int]:
        """The numbers of the runs that touch these points: from, and up to without."""
        begin = bisect_right(self.starts, part.start)
        if begin and self.stop(begin - 1) > part.start:
            begin -= 1
        return begin, bisect_left(self.starts, part.stop)


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """Series of one chunk."""

    series: tuple[Series, ...]
    samples: int
    """Number of values that it was made of."""


def series_of(labels: Mapping[str, str], pairs: Sequence[Any], chunk: Chunk) -> Series:
    """Fold `[seconds, "value"]` pairs, as Prometheus gives them, into runs.

    Raises ValueError, TypeError or IndexError where they are none of this chunk.
    """
    series = Series(dict(labels), array("I"), array("I"), array("d"))
    for part in _without_gaps(pairs, chunk):
        index = _index(part[0], chunk)
        if not 0 <= index <= chunk.points - len(part):
            raise ValueError(f"a sample of {part[0][0]} s is none that was asked for")
        _fold(series, index, [pair[1] for pair in part])
    return series


def _fold(series: Series, index: int, texts: list[str]) -> None:
    """Add values without a gap. Texts are compared, not numbers: it is faster, and NaN equals itself."""
    if 2 * sum(map(ne, texts, islice(texts, 1, None))) > len(texts):
        # Most differ from the one before: folding would cost more than it saves.
        series.starts.extend(range(index, index + len(texts)))
        series.lengths.extend(repeat(1, len(texts)))
        series.values.extend(map(float, texts))
        return
    for text, equal in groupby(texts):
        length = len(list(equal))
        series.starts.append(index)
        series.lengths.append(length)
        series.values.append(float(text))
        index += length


def _index(pair: Any, chunk: Chunk) -> int:
    moment: float = pair[0]
    return round((moment * 1000 - chunk.first_ms) / chunk.step_ms)


def _without_gaps(pairs: Sequence[Any], chunk: Chunk) -> Iterator[Sequence[Any]]:
    """Cut where a point is missing. Most series have none, which their first and last moment tell."""
    if not pairs:
        return
    if _index(pairs[-1], chunk) - _index(pairs[0], chunk) == len(pairs) - 1:
        yield pairs
        return
    begin = 0
    for at in range(1, len(pairs)):
        if _index(pairs[at], chunk) - _index(pairs[at - 1], chunk) != 1:
            yield pairs[begin:at]
            begin = at
    yield pairs[begin:]


def dump_result(answer: ChunkResult) -> bytes:
    """Give the answer as bytes, with a digest so that `load_result` notices when they have changed."""
    head = {
        "samples": answer.samples,
        "itemsize": array("I").itemsize,
        "series": [[dict(sorted(one.labels.items())), len(one.starts)] for one in answer.series],
    }
    parts: Iterable[bytes] = (
        column.tobytes() for one in answer.series for column in (one.starts, one.lengths, one.values)
    )
    text = json.dumps(head, ensure_ascii=False).encode()
    body = zlib.compress(len(text).to_bytes(8, "big") + text + b"".join(parts), 1)
    return _MAGIC + sha256(body).digest() + body


def load_result(raw: bytes) -> ChunkResult:
    """Read what `dump_result` gave. Raises Corrupt."""
    body = raw[len(_MAGIC) + _DIGEST_BYTES :]
    if not raw.startswith(_MAGIC) or raw[len(_MAGIC) : -len(body) or None] != sha256(body).digest():
        raise Corrupt("the digest is another")
    text = zlib.decompress(body)
    at = 8 + int.from_bytes(text[:8], "big")
    head = json.loads(text[8:at])
    if head["itemsize"] != array("I").itemsize:
        raise Corrupt("written on another kind of machine")
    out = []
    for labels, count in head["series"]:
        columns = (array("I"), array("I"), array("d"))
        for column in columns:
            column.frombytes(text[at : at + count * column.itemsize])
            at += count * column.itemsize
        out.append(Series(labels, *columns))
    return ChunkResult(tuple(out), head["samples"])
