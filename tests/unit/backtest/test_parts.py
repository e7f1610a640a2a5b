"""The parts of a backtest, one by one: moments, chunks, runs, what is read from the wire and the disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from math import isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.workbench.backtest.backtest_text import length
from reactor.workbench.backtest.decode import NoAnswer, series
from reactor.workbench.backtest.grid import CHUNK_POINTS, Grid, TooLong
from reactor.workbench.backtest.history_builder import fits
from reactor.workbench.backtest.moments import BadMoment, moment
from reactor.workbench.backtest.prometheus_gaps import outages
from reactor.workbench.backtest.store import SETTLED_MS, opened
from reactor.workbench.backtest.value_runs import ChunkResult, Corrupt, dump_result, load_result, series_of
from tests.unit.backtest.builders import STEP, Values, answer, chunk, text

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW), ("-30d", NOW - timedelta(days=30)), ("now-1h30m", NOW - timedelta(minutes=90)),
        ("2026-11-01T00:00:00Z", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T02:00:00+02:00", datetime(2026, 11, 1, tzinfo=UTC)),
        ("1793491200", datetime(2026, 11, 1, tzinfo=UTC)),
        ("1793491200.5", datetime(2026, 11, 1, 0, 0, 0, 500_000, UTC)),
    ],
)  # fmt: skip
def test_moments_are_absolute_or_before_now(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "-30", "30x", "2026-11-01", "2026-13-01T00:00:00Z", "-999999999w", "20261101"]
)
def test_an_invalid_time_is_told(text: str) -> None:
    with pytest.raises(BadMoment):
        moment(text, NOW)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(BadMoment, match="time zone"):
        moment("2026-11-01T00:00:00", NOW)


@given(st.integers(0, 10**8), st.integers(0, 10**7), st.integers(100, 90_000), st.integers(0, 10**7))
def test_chunks_hold_every_point_of_the_range_once(from_ms: int, width: int, step: int, later: int) -> None:
    grid = Grid(from_ms, from_ms + width, step, from_ms + width + later)
    points = [part.first_ms + index * step for part in grid.chunks() for index in grid.part(part)]
    first = -(-from_ms // step) * step
    assert points == list(range(first, from_ms + width + 1, step))
    assert all(part.points <= CHUNK_POINTS and part.last_ms <= grid.now_ms for part in grid.chunks())


def test_a_range_with_too_many_steps_is_refused() -> None:
    with pytest.raises(TooLong, match="--step"):
        list(Grid(0, 10**13, 100, 10**13).chunks())


VALUES = st.lists(st.sampled_from([None, 0.0, 1.0, 1.0, 0.1, float("nan"), float("inf")]), max_size=60)


@given(VALUES)
def test_runs_and_bytes_lose_nothing(values: list[float | None]) -> None:
    before = answer({"a": values}, chunk(len(values)))
    after = load_result(dump_result(before))
    assert after.samples == before.samples
    found: list[float | None] = [None] * len(values)
    for one in after.series:
        for start, count, value in zip(one.starts, one.lengths, one.values, strict=True):
            found[start : start + count] = [value] * count
    assert list(map(str, found)) == list(map(str, values))


@given(VALUES)
def test_spans_are_where_a_series_was_there(values: list[float | None]) -> None:
    there = {index for index, value in enumerate(values) if value is not None}
    found = answer({"a": values}, chunk(len(values))).series
    assert {index for one in found for span in one.spans() for index in range(*span)} == there


@pytest.mark.parametrize("pairs", [[[-STEP, "1"]], [[3 * STEP, "1"]], [[0, "x"]], [[0]], [["0", "1"]], [[None, "1"]]])
def test_samples_that_were_not_asked_for_are_refused(pairs: list[list[object]]) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)):
        series_of({}, pairs, chunk(3))


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, by: int) -> None:
    raw = bytearray(dump_result(answer({"a": [1.0, 2.0]}, chunk(2))))
    raw[place % len(raw)] ^= by
    with pytest.raises(Corrupt):
        load_result(bytes(raw))


async def pieces(text: str, size: int) -> AsyncIterator[bytes]:
    raw = text.encode()
    for at in range(0, len(raw), size):
        yield raw[at : at + size]


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_answer_is_read_however_it_is_cut(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.workbench.backtest.decode.TRY_BYTES", 1)
    entries = '{"metric": {"a": "]}]\\"é"}, "values": [[0, "1"], [30, "2"]]} , {"metric": {}, "values": []}'
    body = f'{{"status": "success", "data": {{"resultType": "matrix", "result": [{entries}]}}, "warnings": ["x"]}}'
    found = [one async for one in series(pieces(body, size))]
    assert [one["metric"] for one in found] == [{"a": ']}]"é'}, {}]
    for end in range(len(body) - 1):
        with pytest.raises(NoAnswer):
            assert [one async for one in series(pieces(body[:end], 50))]


def test_an_outage_lasts_from_the_last_scrape_until_the_next() -> None:
    scrapes: Values = [0.0, 30.0, 30.0, 30.0, 30.0, 150.0, None, 210.0]
    part = chunk(8)
    found = outages([(part, range(8), answer({"a": scrapes}, part))], 60)
    assert found is not None
    assert list(found.spans) == [(120, 150), (180, 210)]
    assert [found.at(second) for second in (119, 120, 149, 150)] == [False, True, True, False]
    assert [list(one) for one in found.within(part, range(8))] == [[4], [6]]


def test_without_scrapes_health_cannot_be_told() -> None:
    assert outages([(chunk(2), range(2), ChunkResult((), 0))], 60) is None


def test_only_what_no_longer_changes_outlives_the_run(tmp_path: Path) -> None:
    now = 10**12
    old, young, part = (
        chunk(CHUNK_POINTS), chunk(CHUNK_POINTS, first=now // 1000 // STEP - CHUNK_POINTS), chunk(10),
    )  # fmt: skip
    assert young.last_ms > now - SETTLED_MS
    cache = tmp_path / "cache"
    with opened(cache, now_ms=now) as store:
        for one in (old, young, part):
            store.save("u", "q", one, ChunkResult((), 7))
            assert store.load("u", "q", one) == ChunkResult((), 7)
        assert store.load("u", "other", old) is None
    with opened(cache, now_ms=now) as store:
        assert [store.load("u", "q", one) is not None for one in (old, young, part)] == [True, False, False]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    ("template", "target", "expected"),
    [
        ("service/east/shop/{service}", "service/east/shop/a", True), ("service/{c}/shop/x", "service/e/shop/y", False),
        ("custom/a[b]", "custom/a[b]", True), ("custom/a", "custom/b", False),
    ],
)  # fmt: skip
def test_a_template_fits_what_it_could_give(template: str, target: str, expected: bool) -> None:
    assert fits(template, target) is expected


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (0.5, "0.5 s"), (90, "1 min 30 s"), (86_400, "1 d"), (90_061, "1 d 1 h")]
)
def test_lengths_are_said_as_people_do(seconds: float, words: str) -> None:
    assert length(seconds) == words


def test_prometheus_writes_numbers_so(tmp_path: Path) -> None:
    assert isnan(float(text(float("nan"))))
