"""Backoff of the return: each failure soon after a return multiplies the wait, up to a maximum, and is forgotten in
time."""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.rulefile.recovery_backoff import RecoveryBackoff

BASE_SECONDS = 10.0
"""Seconds that are multiplied where recoverySeconds is 0."""
FAILURES_MAX = 64


def longer(backoff: RecoveryBackoff, base: float, failures: int, *, least: float) -> float:
    """Give the wait of who has failed again so often. `base`: what is multiplied; `least`: the shortest; in seconds."""
    seconds = base * backoff.factor ** min(failures, FAILURES_MAX)
    return max(min(seconds, backoff.max_seconds), least)


def failures_with(backoff: RecoveryBackoff, failures: int, returned_at: datetime | None, at: datetime) -> int:
    """Number of failures in a row soon after a return, with the one at `at`; 0 if it is later than `resetSeconds` after
    the return."""
    soon = returned_at is not None and at - returned_at <= timedelta(seconds=backoff.reset_seconds)
    return min(failures + 1, FAILURES_MAX) if soon else 0


def times(failures: int) -> str:
    """Count in words: "once", "3 times"."""
    return "once" if failures == 1 else f"{failures} times"
