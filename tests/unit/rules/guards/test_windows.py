"""Blocked windows: cron in a time zone, through the changes of its clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.limits.windows import open_until
from rules.rulefile.guards import BlockedWindow
from tests.examples import many

BERLIN = ZoneInfo("Europe/Berlin")


def window(cron: str, *, hours: float, timezone: str = "Europe/Berlin") -> BlockedWindow:
    return BlockedWindow(cron=cron, duration_seconds=hours * 3600, timezone=timezone)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def berlin(*parts: int, fold: int = 0) -> datetime:
    return datetime(*parts, tzinfo=BERLIN, fold=fold)  # type: ignore[misc, arg-type]


def test_a_window_is_open_from_its_begin_until_just_before_its_end() -> None:
    night = window("0 22 * * *", hours=8, timezone="UTC")
    assert open_until(night, utc(2026, 3, 4, 21, 59, 59)) is None
    assert open_until(night, utc(2026, 3, 4, 22)) == utc(2026, 3, 5, 6)
    assert open_until(night, utc(2026, 3, 5, 5, 59, 59)) == utc(2026, 3, 5, 6)
    assert open_until(night, utc(2026, 3, 5, 6)) is None


def test_a_moment_counts_to_the_microsecond() -> None:
    night = window("0 22 * * *", hours=1, timezone="UTC")
    assert open_until(night, utc(2026, 3, 4, 21, 59, 59, 999_999)) is None
    assert open_until(night, utc(2026, 3, 4, 22, 59, 59, 999_999)) is not None
    assert open_until(night, utc(2026, 3, 4, 23, 0, 0, 1)) is None


@pytest.mark.parametrize(("sunday", "day"), [("0", 1), ("7", 1), ("SUN", 1), ("1", 2), ("mon", 2)])
def test_days_of_the_week_are_crons_own(sunday: str, day: int) -> None:
    assert open_until(window(f"0 0 * * {sunday}", hours=1, timezone="UTC"), utc(2026, 3, day)) is not None


def test_two_limited_fields_of_days_mean_either() -> None:
    either = window("0 0 13 * FRI", hours=1, timezone="UTC")
    assert open_until(either, utc(2026, 3, 6)) is not None  # a Friday
    assert open_until(either, utc(2026, 4, 13)) is not None  # a Monday, the 13th
    assert open_until(either, utc(2026, 4, 14)) is None


def test_a_window_follows_its_zone_through_the_year() -> None:
    office = window("0 9 * * *", hours=8)
    assert open_until(office, utc(2026, 1, 7, 8)) == utc(2026, 1, 7, 16)
    assert open_until(office, utc(2026, 7, 7, 7)) == utc(2026, 7, 7, 15)


def test_a_begin_that_clocks_skip_is_the_moment_after_the_gap() -> None:
    # 2026-03-29 02:00 becomes 03:00 in Berlin.
    night = window("30 2 * * *", hours=1)
    assert open_until(night, utc(2026, 3, 29, 0, 59)) is None
    assert open_until(night, utc(2026, 3, 29, 1)) == utc(2026, 3, 29, 2)


def test_a_begin_that_clocks_repeat_comes_once() -> None:
    # 2026-10-25 03:00 becomes 02:00 in Berlin: half past two comes twice.
    night = window("30 2 * * *", hours=1)
    assert open_until(night, berlin(2026, 10, 25, 2, 30)) == utc(2026, 10, 25, 1, 30)
    assert open_until(night, berlin(2026, 10, 25, 2, 29, fold=1)) == utc(2026, 10, 25, 1, 30)
    assert open_until(night, berlin(2026, 10, 25, 2, 30, fold=1)) is None


def test_a_window_over_the_change_lasts_as_many_real_seconds() -> None:
    night = window("0 1 * * *", hours=4)
    assert open_until(night, berlin(2026, 10, 25, 1)) == berlin(2026, 10, 25, 4)
    assert open_until(night, berlin(2026, 3, 29, 1)) == berlin(2026, 3, 29, 6)


def test_an_hourly_window_opens_each_real_hour() -> None:
    hourly = window("0 * * * *", hours=0.5)
    for hour in range(4):
        begin = utc(2026, 10, 24, 23) + timedelta(hours=hour)
        assert open_until(hourly, begin) == begin + timedelta(minutes=30)
        assert open_until(hourly, begin + timedelta(minutes=30)) is None


@many(100)
@given(st.sampled_from([utc(2026, 3, 28), utc(2026, 10, 24), utc(2026, 7, 1)]), st.integers(0, 3 * 24 * 60))
def test_a_daily_window_is_open_for_its_length_each_day(day: datetime, minutes: int) -> None:
    """Changes of clocks do not matter: 26 hours from any moment on hold a begin, and each window is open
    for its hour."""
    daily, start = window("30 2 * * *", hours=1), day + timedelta(minutes=minutes)
    ends = {open_until(daily, start + timedelta(minutes=minute)) for minute in range(0, 26 * 60, 5)} - {None}
    assert 1 <= len(ends) <= 2
    for end in ends:
        assert end is not None
        assert open_until(daily, end) is None
        assert open_until(daily, end - timedelta(seconds=1)) == end
        assert open_until(daily, end - timedelta(hours=1)) == end
        assert open_until(daily, end - timedelta(hours=1, seconds=1)) is None
