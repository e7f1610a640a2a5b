"""Measurements of a query, folded to the width of a picture."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Iterator
from math import isnan, nan

from reactor.workbench.backtest.curves import Curve
from reactor.workbench.backtest.grid import CHUNK_POINTS, Chunk, Grid
from reactor.workbench.backtest.value_runs import Series
from rules.rehearsal.backtest.rule_story import COLUMNS

STEP = 30


def folded(values: list[float], *, starts: list[int] | None = None, lengths: list[int] | None = None) -> Curve:
    """A curve over as many columns as there are points."""
    curve = Curve("error-rate", "service/east/shop/a", 0.05, None, 0, COLUMNS * STEP)
    starts = starts or list(range(len(values)))
    series = Series({}, array("I", starts), array("I", lengths or [1] * len(values)), array("d", values))
    curve.add(series, Chunk(0, STEP * 1000, COLUMNS), range(COLUMNS))
    return curve


def test_each_column_has_the_least_and_the_greatest_value_of_its_time() -> None:
    curve = folded([0.1, 0.4, nan, 0.2])
    assert [*curve.low[:2], *curve.high[:2]] == [0.1, 0.4, 0.1, 0.4]
    assert isnan(curve.low[2])
    assert (curve.low[3], curve.high[3]) == (0.2, 0.2)
    assert isnan(curve.low[4])


def test_a_value_that_does_not_change_fills_its_columns_and_a_gap_none() -> None:
    curve = folded([0.1, 0.3], starts=[0, 50], lengths=[20, 10])
    assert set(curve.high[:20]) == {0.1}
    assert all(map(isnan, curve.high[20:50]))
    assert set(curve.high[50:60]) == {0.3}


def test_several_series_of_a_target_make_one_band() -> None:
    curve = folded([0.1] * 10)
    curve.add(Series({}, array("I", [0]), array("I", [5]), array("d", [0.7])), Chunk(0, STEP * 1000, 10), range(10))
    assert (curve.low[0], curve.high[0], curve.high[9]) == (0.1, 0.7, 0.1)


def test_a_longer_past_takes_no_more_memory() -> None:
    assert _peak(days=40) < _peak(days=10) * 1.2


def _peak(*, days: int) -> int:
    grid = Grid(0, days * 86_400_000, STEP * 1000, days * 86_400_000)
    tracemalloc.start()
    curve = Curve("error-rate", "a", 0.05, None, 0, days * 86_400)
    for chunk, series in _measured(grid):
        curve.add(series, chunk, grid.part(chunk))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(curve.high) == CHUNK_POINTS - 1
    return peak


def _measured(grid: Grid) -> Iterator[tuple[Chunk, Series]]:
    for chunk in grid.chunks():
        count = chunk.points
        yield chunk, Series({}, array("I", range(count)), array("I", [1] * count), array("d", map(float, range(count))))
