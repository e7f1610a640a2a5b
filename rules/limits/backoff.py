"""Who fails again soon after the return waits longer: so many times the wait, up to a maximum, forgotten in time."""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.rulefile.failback_policy import RecoveryBackoff

BASE_SECONDS = 10.0
"""What is multiplied where recoverySeconds is 0."""
FAILURES_MAX = 64


def longer(backoff: RecoveryBackoff, base: float, failures: int, *, least: float) -> float:
    """Give the wait of who has failed again so often. `base`: what is multiplied; `least`: the shortest; in seconds."""
    seconds = base * backoff.factor ** min(failures, FAILURES_MAX)
    return max(min(seconds, backoff.max_seconds), least)


def failures_with(backoff: RecoveryBackoff, failures: int, returned_at: datetime | None, at: datetime) -> int:
    """How often who returned then has failed again, with the failure at this moment."""
    soon = returned_at is not None and at - returned_at <= timedelta(seconds=backoff.reset_seconds)
    return min(failures + 1, FAILURES_MAX) if soon else 0


def times(failures: int) -> str:
    """How often, in words."""
    return "once" if failures == 1 else f"{failures} times"
