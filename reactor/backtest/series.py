"""A query's answer for one chunk, as runs of equal values: most of what is measured does not change most of the time.

Prometheus writes numbers so that they can be read back exactly, so eight bytes lose nothing of its text.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

from reactor.backtest.grid import Chunk

_MAGIC = b"reactor-backtest-1\n"
_DIGEST_BYTES = 32
_VALUE = itemgetter(1)


class Corrupt(ValueError):
    """What stands on the disk is not what was written."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series: at the points from `starts[i]` on, for `lengths[i]` points, it was `values[i]`."""

    labels: Mapping[str, str]
    starts: array[int]
    lengths: array[int]
    values: array[float]

    def runs(self) -> Iterator[tuple[int, int, float]]:
        """Give each run: its first point, the one after its last, and the value. Between runs there was no series."""
        for start, length, value in zip(self.starts, self.lengths, self.values, strict=True):
            yield start, start + length, value

    def spans(self) -> Iterator[tuple[int, int]]:
        """Give the points at which the series was there: from, and up to without."""
        begin = end = -1
        for start, stop, _ in self.runs():
            if start != end:
                if end > begin:
                    yield begin, end
                begin = start
            end = stop
        if end > begin:
            yield begin, end


@dataclass(frozen=True, slots=True)
class Answer:
    """All series of one chunk."""

    series: tuple[Series, ...]
    samples: int
    """How many values it was made of."""


def series_of(labels: Mapping[str, str], pairs: Sequence[Any], chunk: Chunk) -> Series:
    """Fold `[seconds, "value"]` pairs, as Prometheus gives them, into runs.

    Raises ValueError, TypeError or IndexError where they are none of this chunk.
    """
    series = Series(dict(labels), array("L"), array("L"), array("d"))
    for part in _without_gaps(pairs, chunk):
        index = _index(part[0], chunk)
        if not 0 <= index <= chunk.points - len(part):
            raise ValueError(f"a sample of {part[0][0]} s is none that was asked for")
        for text, equal in groupby(part, key=_VALUE):
            length = len(list(equal))
            series.starts.append(index)
            series.lengths.append(length)
            series.values.append(float(text))
            index += length
    return series


def _index(pair: Any, chunk: Chunk) -> int:
    return round((pair[0] * 1000 - chunk.first_ms) / chunk.step_ms)


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


def dump(answer: Answer) -> bytes:
    """Give the answer as bytes, with a digest so that `load` notices when they have changed."""
    head = {
        "samples": answer.samples,
        "itemsize": array("L").itemsize,
        "series": [[dict(sorted(one.labels.items())), len(one.starts)] for one in answer.series],
    }
    parts: Iterable[bytes] = (
        column.tobytes() for one in answer.series for column in (one.starts, one.lengths, one.values)
    )
    text = json.dumps(head, ensure_ascii=False).encode()
    body = zlib.compress(len(text).to_bytes(8, "big") + text + b"".join(parts), 1)
    return _MAGIC + sha256(body).digest() + body


def load(raw: bytes) -> Answer:
    """Read what `dump` gave. Raises Corrupt."""
    body = raw[len(_MAGIC) + _DIGEST_BYTES :]
    if not raw.startswith(_MAGIC) or raw[len(_MAGIC) : -len(body) or None] != sha256(body).digest():
        raise Corrupt("the digest is another")
    text = zlib.decompress(body)
    at = 8 + int.from_bytes(text[:8], "big")
    head = json.loads(text[8:at])
    if head["itemsize"] != array("L").itemsize:
        raise Corrupt("written on another kind of machine")
    out = []
    for labels, count in head["series"]:
        columns = (array("L"), array("L"), array("d"))
        for column in columns:
            column.frombytes(text[at : at + count * column.itemsize])
            at += count * column.itemsize
        out.append(Series(labels, *columns))
    return Answer(tuple(out), head["samples"])
