"""Thresholds: how many tries in a row it takes to change a verdict."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from reactor.sources.probes.threshold import ThresholdCounter

TRIES = st.lists(st.booleans(), max_size=60)
THRESHOLD = st.integers(1, 5)


def verdicts(tries: list[bool], failures: int, successes: int) -> list[Health | None]:
    streak = ThresholdCounter(failures=failures, successes=successes)
    return [streak.add(succeeded=succeeded) for succeeded in tries]


def test_nothing_is_said_before_the_first_threshold() -> None:
    assert verdicts([False, False], failures=3, successes=1) == [None, None]


def test_the_first_success_is_enough_by_default() -> None:
    assert verdicts([True], failures=3, successes=1) == [Health.HEALTHY]


def test_a_single_failure_in_between_changes_nothing() -> None:
    assert verdicts([True, False, True, False, False], failures=3, successes=1)[-1] is Health.HEALTHY


@given(TRIES, THRESHOLD, THRESHOLD)
def test_a_verdict_falls_exactly_when_as_many_tries_in_a_row_agree(
    tries: list[bool], failures: int, successes: int
) -> None:
    found = verdicts(tries, failures, successes)
    before: Health | None = None
    for index, verdict in enumerate(found):
        run = len(next(iter([list(group) for _, group in groupby(reversed(tries[: index + 1]))])))
        needed = successes if tries[index] else failures
        expected = (Health.HEALTHY if tries[index] else Health.UNHEALTHY) if run >= needed else before
        assert verdict is expected
        before = verdict


@given(TRIES, TRIES, THRESHOLD, THRESHOLD)
def test_after_our_own_mistake_everything_is_counted_from_the_start(
    before: list[bool], after: list[bool], failures: int, successes: int
) -> None:
    streak = ThresholdCounter(failures=failures, successes=successes)
    for succeeded in before:
        streak.add(succeeded=succeeded)
    streak.lose()
    assert [streak.add(succeeded=s) for s in after] == verdicts(after, failures, successes)
