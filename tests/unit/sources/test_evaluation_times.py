"""An answer out of a cache is as old as its evaluation, whatever Prometheus's clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reactor.clients.changes import ReadInterval
from reactor.sources.prometheus.evaluation_times import ANSWERS, EvaluationTimes

AHEAD = 12.5
"""Seconds by which Prometheus's clock is ahead of ours."""


def look(at: float) -> ReadInterval:
    began = datetime.fromtimestamp(1_700_000_000 + at, UTC)
    return ReadInterval(began, began + timedelta(seconds=0.2))


def evaluated(at: float, ahead: float = AHEAD) -> list[float]:
    return [1_700_000_000 + at + ahead]


def test_fresh_answers_are_dated_by_the_look_whatever_the_clock_says() -> None:
    times = EvaluationTimes()
    for at in range(20):
        assert times.dated(evaluated(at + 0.1), look(at)) == look(at)


def test_an_answer_that_comes_once_more_shows_nothing_new() -> None:
    times = EvaluationTimes()
    assert times.dated(evaluated(0.1), look(0)) == look(0)
    for at in (1, 2, 3):
        assert times.dated(evaluated(0.1), look(at)) is None
    assert times.dated(evaluated(4.1), look(4)) == look(4)


def test_an_answer_that_was_evaluated_before_the_look_is_dated_then() -> None:
    times = EvaluationTimes()
    times.dated(evaluated(0.2), look(0))
    dated = times.dated(evaluated(2.2), look(5))
    assert dated is not None
    assert dated.ended.timestamp() == pytest.approx(1_700_000_000 + 2.2)
    assert dated.began == dated.ended


def test_a_clock_that_was_set_dates_answers_wrongly_for_few_of_them() -> None:
    times = EvaluationTimes()
    times.dated(evaluated(0.1), look(0))
    dated = [times.dated(evaluated(at + 0.1, ahead=-300), look(at)) for at in range(1, 3 * ANSWERS)]
    assert dated[0] != look(1)
    assert dated[ANSWERS:] == [look(at) for at in range(ANSWERS + 1, 3 * ANSWERS)]


def test_a_server_that_tells_no_time_is_believed_as_its_answers_come() -> None:
    times = EvaluationTimes()
    for at in (0, 1, 2):
        assert times.dated([0.0], look(at)) == look(at)
        assert times.dated([], look(at)) == look(at)


def test_a_server_whose_time_never_moves_and_is_far_from_ours_tells_none() -> None:
    times = EvaluationTimes()
    for at in (0, 1, 400):
        assert times.dated(evaluated(0, ahead=-100_000), look(at)) == look(at)


def test_a_server_whose_time_has_moved_is_stuck_when_it_moves_no_more_for_however_long() -> None:
    times = EvaluationTimes()
    times.dated(evaluated(0.1), look(0))
    times.dated(evaluated(1.1), look(1))
    assert [times.dated(evaluated(1.1), look(at)) for at in (2, 200, 2_000)] == [None] * 3
