"""Samples that a curve keeps one by one, and their drawing."""

from __future__ import annotations

from array import array
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reactor.workbench.backtest.curve_picture import curve
from reactor.workbench.backtest.curves import Curve
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.near_samples import NEAR_SECONDS, SAMPLES_MAX, near_spans
from reactor.workbench.backtest.value_runs import Series

DAY = 86_400
WEEK = 7 * DAY
STEP = 30


def test_around_each_change_a_quarter_of_an_hour_is_kept_and_what_overlaps_is_one() -> None:
    assert near_spans([], STEP) == ()
    assert near_spans([DAY, DAY + 480], STEP) == ((DAY - NEAR_SECONDS, DAY + 480 + NEAR_SECONDS),)
    assert len(near_spans([DAY, 2 * DAY], STEP)) == 2
    assert near_spans([DAY + 1], STEP) == ((DAY - 900, DAY + 930),)  # on the points of the query


@given(st.lists(st.integers(0, WEEK), max_size=1000), st.sampled_from([0.1, 1, 15, 30, 300, 3600]))
def test_however_many_changes_there_are_the_samples_are_bounded(changes: list[int], step: float) -> None:
    spans = near_spans(changes, step)
    assert round(sum(until - since for since, until in spans) / step) <= SAMPLES_MAX
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def drawn(values: list[float], near: tuple[tuple[float, float], ...]) -> list[list[float]]:
    """The runs that the page has of a query each 30 s, in seconds."""
    of = Curve("error-rate", "service/east/shop/a", 0.05, None, 0, WEEK, STEP, near)
    count = len(values)
    for first in range(0, count, 2880):
        part = values[first : first + 2880]
        series = Series({}, array("I", range(len(part))), array("I", [1] * len(part)), array("d", part))
        of.add(series, Chunk(first * STEP * 1000, STEP * 1000, len(part)), range(len(part)))
    text = curve(of).split('data-values="')[1].split('"')[0]
    runs = [[float(number) for number in one.split(",")] for one in text.split(";")]
    return [[begin * WEEK / 1000, end * WEEK / 1000, low, high] for begin, end, low, high in runs]


def test_a_short_outage_is_drawn_when_it_was_and_what_is_around_it_has_no_part_of_it() -> None:
    outage = (3 * DAY + 25_320, 3 * DAY + 25_800)
    values = [0.4 if outage[0] <= at * STEP < outage[1] else 0.01 for at in range(WEEK // STEP)]
    runs = drawn(values, near_spans(outage, STEP))
    found = [(round(begin), round(end), low, high) for begin, end, low, high in runs]
    assert found == [(0, outage[0], 0.01, 0.01), (*outage, 0.4, 0.4), (outage[1], WEEK, 0.01, 0.01)]


def test_a_sample_that_is_missing_leaves_a_gap_near_a_change() -> None:
    values = [0.01 + (at % 7) / 1000 for at in range(WEEK // STEP)]
    values[2900] = float("nan")
    gaps = [
        (round(a[1]), round(b[0])) for a, b in pairwise(drawn(values, near_spans([2880 * STEP], STEP))) if a[1] != b[0]
    ]
    assert gaps == [(2900 * STEP, 2901 * STEP)]


def test_two_series_of_a_target_are_one_band_near_a_change_too() -> None:
    of = Curve("error-rate", "service/east/shop/a", 0.05, None, 0, WEEK, STEP, near_spans([3000], STEP))
    for value in (0.1, 0.3):
        of.add(Series({}, array("I", [0]), array("I", [200]), array("d", [value])), Chunk(0, 30_000, 200), range(200))
    assert set(of.samples.values()) == {(0.1, 0.3)}
    assert [min(of.samples), max(of.samples)] == [2100, 3870]
