"""Rules of an eviction: the time at which a failure counts, the end of the old copy, and the blocking of its cluster.

Every limit is reached at exactly its moment. These are single answers; `workload` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.reasons import Because, Held
from rules.core.timers import runs
from rules.kinds.workload import copy_backoff
from rules.kinds.workload.model import ApplicationFailover, Behaviour, OnGraceExpired, Policy, PreConditions
from rules.kinds.workload.state import Cause, Copy, Departure, Relocation
from rules.kinds.workload.tolerations import WindowOf


def armed_at(window: WindowOf, conditions: PreConditions | None, copy: Copy) -> datetime | None:
    """Give the moment from which a failure of this copy counts; None: not yet, and the time is not known.

    All conditions that are set must hold: the delay since its status was first seen, and that it was once Healthy.
    """
    if copy.first_status_at is None:
        return None
    if conditions is None:
        return copy.first_status_at
    if conditions.healthy_state is not None and not copy.once_healthy:
        return None
    return copy.first_status_at + window(conditions.delay_seconds or 0)


def tolerated_until(window: WindowOf, application: ApplicationFailover, copy: Copy) -> datetime | None:
    """Give the moment in which the toleration of a bad copy ends, or its back-off where there is none; None: nothing is
    timed."""
    if copy.bad is None or not runs(copy.bad):
        return None
    seconds = application.decision_conditions.toleration_seconds
    return copy.bad.since + window(seconds or copy_backoff.waits(copy))


def fails_at(window: WindowOf, application: ApplicationFailover, copy: Copy) -> datetime | None:
    """Give the moment from which a copy has failed; None: it is not bad, not known, or does not count yet."""
    armed, until = armed_at(window, application.pre_conditions, copy), tolerated_until(window, application, copy)
    return max(until, armed) if until is not None and armed is not None else None


def purged_because(
    age: timedelta, grace: timedelta | None, targets: Mapping[str, Health | None], *, placed: bool,
    source: Health | None, on_expired: OnGraceExpired,
) -> Because | Held | None:  # fmt: skip
    """Say why the old copy goes now, or why it stays although its grace is over; None: it waits.

    `targets`: the copies that stay, None where nothing was observed of one since it was placed. No targets at all are
    never taken as Healthy ones. `grace` None: only a person removes it.
    """
    if grace is None:
        return None
    healthy = [name for name, status in targets.items() if status is Health.HEALTHY]
    if placed and targets and len(healthy) == len(targets):
        return Because.REPLACEMENT_HEALTHY
    if age < grace:
        return None
    if on_expired is OnGraceExpired.KEEP:
        return Because.GRACE_ELAPSED if placed and healthy else Held.GRACE_EXPIRED
    if source is Health.HEALTHY and not healthy:
        return Held.LAST_HEALTHY_COPY
    return Because.GRACE_ELAPSED


def behaviour_of(policy: Policy, cause: Cause) -> Behaviour:
    """Settings of the policy for failures of this cause."""
    failover = policy.failover
    found = failover and (failover.application if cause == "Application" else failover.cluster)
    return found or Behaviour()


def next_purge(window: WindowOf, moves: Iterable[Relocation], now: datetime) -> datetime | None:
    """Give the moment in which the next grace is over; None: none is running."""
    ends = [
        move.evicted_at + window(move.grace_seconds)
        for move in moves
        if move.evicted_at is not None and move.grace_seconds is not None
    ]
    return min((end for end in ends if end > now), default=None)


def evicted(moves: Mapping[str, Relocation], cluster: str, move: Relocation) -> Mapping[str, Relocation]:
    """Give the moves with this one. One that is open already is never replaced: its grace does not begin again."""
    known = moves.get(cluster)
    if known is not None and known.evicted_at is not None:
        return moves
    return dict(sorted({**moves, cluster: move}.items()))


def bound(copies: Mapping[str, Copy], moves: Mapping[str, Relocation]) -> dict[str, Copy]:
    """Give the copies that stay."""
    return {name: copy for name, copy in copies.items() if name not in moves}


def unblocked_at(left: Departure, block_seconds: float | None) -> datetime | None:
    """Give the moment from which a cluster that was left may be used again; None: never.

    `block_seconds` None: it is not blocked; 0: without end.
    """
    if block_seconds is None:
        return left.at
    return left.at + timedelta(seconds=block_seconds) if block_seconds > 0 else None


def blocked(left: Departure, block_seconds: float | None, now: datetime) -> bool:
    """True if a cluster that was left is still blocked for the workload."""
    until = unblocked_at(left, block_seconds)
    return until is None or now < until
