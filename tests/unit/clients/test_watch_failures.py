"""Delay before a failed watch is tried again."""

from __future__ import annotations

import pytest

from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden
from reactor.clients.watch_failures import WatchFailures
from reactor.runtime.retry_backoff import RetryBackoff


@pytest.mark.parametrize(("asked", "waits"), [(1.0, 1.0), (3.0, 3.0), (4.0, 4.0), (30.0, 4.0), (3600.0, 4.0)])
def test_what_a_server_asks_to_wait_is_kept_up_to_four_seconds(asked: float, waits: float) -> None:
    """It was kept for 30 s: what happened in that time on a server that was well again was seen so late."""
    assert failures().failed(ApiUnavailable("busy", after=asked), lasted=0) == waits


def test_an_outage_is_asked_about_at_least_every_two_seconds_and_a_refusal_every_four() -> None:
    found = failures()
    for _ in range(20):
        away, refused = found.failed(ApiUnavailable("no answer"), lasted=0), found.failed(Forbidden("no"), lasted=0)
    assert 0.5 <= away <= 2.0
    assert refused == 4.0


def test_a_server_that_is_away_and_there_in_turn_is_not_asked_in_step_with_it() -> None:
    """Two seconds each: a pause that is always as long met it away time and again."""
    found = failures()
    waits = [found.failed(ApiUnavailable("no answer"), lasted=0) for _ in range(40)][20:]
    assert max(waits) - min(waits) > 0.5


def failures() -> WatchFailures:
    return WatchFailures("east", "/api/v1/pods", RetryBackoff(first_seconds=0.1, most_seconds=30), 100)
