"""Observations that a PrometheusQuery source would have made. Pure: answers in, observations out.

The live source says its word at every evaluation and repeats it every refreshSeconds, so an observation holds until
another one comes. Here only the words that change something are said, without staleSeconds: the same decisions follow
(`tests/unit/backtest/test_equality.py` plays both), and a month is a few thousand observations, not millions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from math import isnan
from typing import NamedTuple

from bus.messages import Health, Observation
from reactor.sources.prometheus.prometheus_query import absence, judge
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.label_targets import Targets, short
from reactor.workbench.backtest.prometheus_gaps import Outages
from reactor.workbench.backtest.value_runs import ChunkResult, Series
from rules.rehearsal.simulation import at
from rules.rulefile.sources import Bound, PrometheusQuery


class Word(NamedTuple):
    """Health of a target from one point on."""

    status: Health
    detail: str = ""
    labels: Mapping[str, str] = {}

    def same(self, other: Word | None) -> bool:
        """True if it says nothing new. Another value alone is no news."""
        return other is not None and (self.status, self.labels) == (other.status, other.labels)


class SeriesSpan(NamedTuple):
    """A series, and points at which it says the same."""

    first: int
    stop: int
    status: Health
    value: float
    labels: Mapping[str, str]


_WORST_FIRST = (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY)
AWAY = Word(Health.UNKNOWN, "Prometheus was away")


def observations(
    source: PrometheusQuery, chunks: Iterable[tuple[Chunk, range, ChunkResult]], outages: Outages, targets: Targets
) -> Iterator[tuple[float, Observation]]:
    """Give what the source would have said, with its second, in order."""
    last: dict[str, Word] = {}
    since: dict[str, datetime] = {}
    known = set() if "{" in source.target else {source.target}
    for chunk, part, answer in chunks:
        spans = _spans(source, answer, part, targets)
        away = list(outages.within(chunk, part))
        said: list[tuple[int, str, Word, datetime]] = []
        for target in sorted(known | spans.keys()):
            for index, word in _words(source, spans.get(target, ()), part, away, is_known=target in known):
                before = last.get(target)
                if word.same(before):
                    continue
                if before is None or before.status is not word.status:  # other labels alone: as long as before
                    since[target] = at(chunk.second(index))
                last[target] = word
                said.append((index, target, word, since[target]))
        known |= last.keys()
        for index, target, word, begun in sorted(said, key=lambda one: one[:2]):
            second = chunk.second(index)
            yield second, Observation(
                target=target, status=word.status, signal=source.says, observed_at=at(second),
                since=begun, labels=short(word.labels), detail=word.detail,
            )  # fmt: skip


def _spans(source: PrometheusQuery, answer: ChunkResult, part: range, targets: Targets) -> dict[str, list[SeriesSpan]]:
    """Give what each target's series say."""
    out: defaultdict[str, list[SeriesSpan]] = defaultdict(list)
    for series in answer.series:
        target = targets.of(series.labels)
        if target is not None:
            out[target] += _judged(source, series, part)
    return {target: spans for target, spans in out.items() if spans}


def _judged(source: PrometheusQuery, series: Series, part: range) -> Iterator[SeriesSpan]:
    """Judge as the live source does, and join neighbours that say the same."""
    for begin, end in series.pieces(*series.within(part)):
        joined: SeriesSpan | None = None
        for run, stop, status in _statuses(source.unhealthy_when, series, begin, end):
            if joined is not None and joined.status is status:
                joined = joined._replace(stop=min(series.stop(stop - 1), part.stop))
                continue
            if joined is not None:
                yield joined
            first = max(series.starts[run], part.start)
            joined = SeriesSpan(first, min(series.stop(stop - 1), part.stop), status, series.values[run], series.labels)
        if joined is not None:
            yield joined


_ONE_BY_ONE = 16
"""Values from which it pays to look at the least and the greatest first."""


def _statuses(when: str | Bound, series: Series, begin: int, end: int) -> Iterator[tuple[int, int, Health]]:
    """Give the status of these runs, as many at once as are surely the same.

    What lies between two healthy values is healthy, whatever the bounds: most of a month is not looked at one by one.
    NaN is greater and less than nothing, so it is looked for by itself.
    """
    values = series.values[begin:end]
    if not isinstance(when, Bound):
        yield begin, end, judge(when, values[0])
        return
    if len(values) > _ONE_BY_ONE:
        least, most = min(values), max(values)
        if judge(when, least) is judge(when, most) is Health.HEALTHY and not any(map(isnan, values)):
            yield begin, end, Health.HEALTHY
            return
        middle = (begin + end) // 2
        yield from _statuses(when, series, begin, middle)
        yield from _statuses(when, series, middle, end)
        return
    for run, value in enumerate(values, begin):
        yield run, run + 1, judge(when, value)


def _words(
    source: PrometheusQuery, spans: Iterable[SeriesSpan], part: range, away: Iterable[range], *, is_known: bool
) -> Iterator[tuple[int, Word]]:
    """Give what is said of one target, from which point on. One that is not known becomes so with its first series."""
    absent = Word(absence(source.unhealthy_when), "no series")
    away = list(away)
    waiting = sorted(spans, key=lambda span: span.first, reverse=True)
    borders = {part.start, *(span.first for span in waiting), *(span.stop for span in waiting)}
    borders |= {one.start for one in away} | {one.stop for one in away}
    there: list[SeriesSpan] = []
    for border in sorted(border for border in borders if border < part.stop):
        there = [span for span in there if span.stop > border]
        while waiting and waiting[-1].first <= border:
            there.append(waiting.pop())
        if any(border in one for one in away):
            word: Word | None = AWAY if is_known else None
        else:
            is_known = is_known or bool(there)
            word = _worst(there) if there else absent if is_known else None
        if word is not None:
            yield border, word


def _worst(spans: Iterable[SeriesSpan]) -> Word:
    """Several series of one target: the worst speaks, of equals the first."""
    worst = min(spans, key=lambda span: _WORST_FIRST.index(span.status))
    return Word(worst.status, f"value {worst.value:g}", worst.labels)
