"""Folds the measured values of queries to the width of a picture: of each column the least and the greatest value.

However long the past was and however many series a target has, a curve is no larger than that: two numbers for each
column, and for each of at most SAMPLES_MAX points in time around the changes of the target's health.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import ceil, inf, isfinite, nan

from reactor.workbench.backtest.fetch import FetchedResults
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.history_builder import BacktestPlan
from reactor.workbench.backtest.label_targets import Targets
from reactor.workbench.backtest.near_samples import NearSpan, near_spans
from reactor.workbench.backtest.value_runs import Series
from rules.rehearsal.backtest.rule_story import COLUMNS, HEALTHY, UNHEARD, Lane, Played, RuleTimeline
from rules.rulefile.sources import Bound, PrometheusQuery

LANES_SHOWN = 60
"""Most lanes of one rule: those with something to see first."""
CURVES_MAX = 60
"""Most targets with a curve, over all rules, those with something to see first: each is some kilobytes of the page."""
_QUIET = bytes([UNHEARD, HEALTHY])


def _unmeasured() -> array[float]:
    return array("d", [nan]) * COLUMNS


@dataclass(slots=True)
class Curve:
    """One signal of one target."""

    signal: str
    target: str
    above: float | None
    below: float | None
    first: float
    until: float
    """Seconds since 1970, as is `first`."""
    step: float = 0.0
    """Seconds for which a sample counts: until the next one is asked for."""
    near: tuple[NearSpan, ...] = ()
    """Spans in which samples are kept one by one, sorted. The columns have the others."""
    samples: dict[float, tuple[float, float]] = field(default_factory=dict)
    """Second to the least and the greatest value of it."""
    low: array[float] = field(default_factory=_unmeasured)
    high: array[float] = field(default_factory=_unmeasured)
    """Greatest value by column; NaN: nothing was measured but what `samples` has."""

    def add(self, series: Series, chunk: Chunk, part: range) -> None:
        """Fold the points of a series that lie in this part of its chunk."""
        begin, end = series.within(part)
        for run, stop in series.pieces(begin, end):
            at, last = max(series.starts[run], part.start), min(series.stop(stop - 1), part.stop)
            while at < last:
                second = chunk.second(at)
                near = self._near(second)
                after = last if near is None else min(_point(chunk, near[1 if near[0] <= second else 0]), last)
                if near is not None and near[0] <= second:
                    self._keep(series, chunk, run, stop, range(at, after))
                else:
                    column = self._column(second)
                    after = min(max(self._first_of(column + 1, chunk), at + 1), after)
                    here = bisect_right(series.starts, at, run, stop) - 1
                    self._fold(column, series.values[here : bisect_left(series.starts, after, here + 1, stop)])
                at = after

    def _near(self, second: float) -> NearSpan | None:
        """The time to keep that is running or comes next."""
        number = bisect_right(self.near, second, key=lambda span: span[1])
        return self.near[number] if number < len(self.near) else None

    def _keep(self, series: Series, chunk: Chunk, run: int, stop: int, points: range) -> None:
        for point in points:
            value = series.values[bisect_right(series.starts, point, run, stop) - 1]
            if isfinite(value):
                second = chunk.second(point)
                low, high = self.samples.get(second, (value, value))
                self.samples[second] = min(low, value), max(high, value)

    def _column(self, second: float) -> int:
        return min(int((second - self.first) / (self.until - self.first) * COLUMNS), COLUMNS - 1)

    def _first_of(self, column: int, chunk: Chunk) -> int:
        """The first point of a chunk that belongs to a column."""
        if column >= COLUMNS:
            return chunk.points
        begin = self.first + column * (self.until - self.first) / COLUMNS
        return _point(chunk, begin)

    def _fold(self, column: int, values: Iterable[float]) -> None:
        """NaN and infinity have no place in a picture."""
        finite = [value for value in values if isfinite(value)]
        if finite:
            # min and max of NaN and a number are the one that comes first: so the number does.
            self.low[column] = min(min(finite), self.low[column])
            self.high[column] = max(max(finite), self.high[column])

    def range(self) -> tuple[float, float]:
        """The least and the greatest of what is drawn, the thresholds and zero too."""
        bounds = [value for value in (self.above, self.below) if value is not None]
        kept = self.samples.values()
        low = min((value for value in (*self.low, *(low for low, _ in kept)) if isfinite(value)), default=inf)
        high = max((value for value in (*self.high, *(high for _, high in kept)) if isfinite(value)), default=-inf)
        return min(low, 0.0, *bounds), max(high, *bounds)


def _point(chunk: Chunk, second: float) -> int:
    """Give the first point of a chunk that is no earlier."""
    return ceil((second * 1000 - chunk.first_ms) / chunk.step_ms)


def shown_lanes(story: RuleTimeline) -> list[Lane]:
    """Give the lanes that are drawn, those with something to see first."""
    lanes = sorted(story.lanes.values(), key=lambda lane: (_is_quiet(lane), lane.object, lane.target))
    return lanes[:LANES_SHOWN]


def _is_quiet(lane: Lane) -> bool:
    return not lane.columns.strip(_QUIET)


def curves(plan: BacktestPlan, answers: FetchedResults, played: Played) -> list[Curve]:
    """Read the answers once more for the targets that are drawn, and fold them. One chunk is in memory at a time."""
    lanes = sorted((one for story in played.stories.values() for one in shown_lanes(story)), key=_is_quiet)
    wanted = frozenset(islice(dict.fromkeys(lane.target for lane in lanes), CURVES_MAX))
    changes = _changes(lanes)
    found: dict[tuple[str, str], Curve] = {}
    for source in plan.sources:
        if isinstance(source, PrometheusQuery) and isinstance(source.unhealthy_when, Bound):
            for target, series, chunk, part in _measured(plan, source, answers):
                if target is None or target not in wanted:
                    continue
                if (curve := found.get((source.says, target))) is None:
                    bound = source.unhealthy_when
                    step = chunk.step_ms / 1000
                    near = near_spans(changes.get(target, ()), step)
                    curve = Curve(source.says, target, bound.above, bound.below, played.first, played.until, step, near)
                    found[source.says, target] = curve
                curve.add(series, chunk, part)
    return list(found.values())


def _changes(lanes: Iterable[Lane]) -> Mapping[str, set[float]]:
    """Give when the health of each target changed, as all rules saw it. That it was first observed is no change."""
    found: dict[str, set[float]] = {}
    for lane in lanes:
        heard = (at for at, before in zip(lane.starts[1:], lane.states, strict=False) if before != UNHEARD)
        found.setdefault(lane.target, set()).update(heard)
    return found


def _measured(
    plan: BacktestPlan, source: PrometheusQuery, answers: FetchedResults
) -> Iterator[tuple[str | None, Series, Chunk, range]]:
    targets = Targets(source.target)
    for ask in plan.asks_of(source):
        for chunk, part, answer in answers.of(ask):
            for series in answer.series:
                yield targets.of(series.labels), series, chunk, part
