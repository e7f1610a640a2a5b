"""Sentences of the demo."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bus.messages import Health
from reactor.demo import sentences
from reactor.demo.ground_truth import RouteWrite
from reactor.demo.tally import RequestCount, TrafficSecond
from rules.core.member import Member, Signal, Window

START = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def second(**counts: RequestCount) -> TrafficSecond:
    return TrafficSecond(1.0, {}, counts)


def test_traffic_shows_success_only_where_something_was_sent() -> None:
    shown = sentences.traffic(second(east=RequestCount(49, 1), west=RequestCount()))
    assert shown == "east 50/s 98% ok, west 0/s"


@pytest.mark.parametrize("seen", [None, second(), second(east=RequestCount())])
def test_traffic_that_has_not_begun_is_no_failure(seen: TrafficSecond | None) -> None:
    assert sentences.traffic(seen) == "no traffic yet"


def test_requests_without_a_backend_are_shown() -> None:
    assert (
        sentences.traffic(second(east=RequestCount(), **{"": RequestCount(0, 50)})) == "east 0/s, no backend 50/s 0% ok"
    )


@pytest.mark.parametrize(
    ("part", "whole", "shown"), [(0, 50, "0%"), (50, 50, "100%"), (999, 1000, "99%"), (1, 1000, "1%"), (1, 2, "50%")]
)
def test_all_and_nothing_are_never_rounded_to(part: int, whole: int, shown: str) -> None:
    assert sentences.percent(part, whole) == shown


def test_a_window_counts_down() -> None:
    window = Window(healthy=False, since=START)
    assert sentences.countdown("service/a", window, 5, after(1.8)) == "service/a bad: 3.2 s of 5 s left"


def test_a_window_never_has_less_than_nothing_left() -> None:
    assert sentences.seconds_left(Window(healthy=True, since=START), 5, after(60)) == 0


def test_a_window_that_waits_does_not_move() -> None:
    window = Window(healthy=True, since=START, waiting_since=after(1))
    shown = sentences.countdown("service/a", window, 8, after(6))
    assert shown == "service/a good again: 7.0 s of 8 s left (waits: Unknown)"


def test_a_reading_is_shown_with_what_was_seen() -> None:
    said = Signal(Health.UNHEALTHY, START, detail="HTTP 503")
    assert sentences.seen("service/a", Member(Health.UNHEALTHY, START, signals={"probe": said})) == (
        "service/a is Unhealthy (HTTP 503)"
    )
    assert sentences.seen("service/a", Member(Health.HEALTHY, START)) == "service/a is Healthy"


def test_a_shift_shows_what_moved_and_how_long_it_took() -> None:
    shift = RouteWrite(1.0, "alert-reactor", {"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 0})
    assert sentences.shifted("east/shop/a", shift, 5.04) == (
        "east/shop/a: a 1 → 0, b 0 → 1, c 0, 5.0 s after the first reading that said so"
    )


def test_a_route_that_is_deleted_has_no_weights() -> None:
    assert sentences.moved({"a": 1}, {}) == "a 1 → -"
    assert sentences.moved({}, {}) == "no backends"
