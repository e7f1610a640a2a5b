"""Waiting before trying again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor.runtime.retry_backoff import RetryBackoff


def test_waits_double_up_to_the_cap() -> None:
    backoff = RetryBackoff(first_seconds=1, most_seconds=5, spread=lambda: 1.0)
    assert [backoff.failed() for _ in range(5)] == [1, 2, 4, 5, 5]


def test_success_starts_from_the_first_wait_again() -> None:
    backoff = RetryBackoff(first_seconds=1, most_seconds=5, spread=lambda: 1.0)
    backoff.failed()
    backoff.succeeded()
    assert (backoff.failed(), backoff.failures) == (1, 1)


def test_the_other_sides_wish_is_kept_up_to_the_cap() -> None:
    backoff = RetryBackoff(first_seconds=1, most_seconds=5, spread=lambda: 1.0)
    assert backoff.failed(asked_seconds=3) == 3
    assert backoff.failed(asked_seconds=3600) == 5


@given(st.integers(1, 200))
def test_a_wait_is_never_zero_and_never_much_above_the_cap(failures: int) -> None:
    backoff = RetryBackoff(first_seconds=0.1, most_seconds=30)
    waits = [backoff.failed() for _ in range(failures)]
    assert all(0.05 <= wait <= 45 for wait in waits)
