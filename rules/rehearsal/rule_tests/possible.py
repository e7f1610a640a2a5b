"""Reasons that a rule can have, as it is written: those of its kind, and those of the limits that apply to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bus.messages import Mode
from rules.catalog import INTERNAL, KINDS, kind_of
from rules.core.reasons import Because, Held
from rules.kinds.traffic.failback_policy import FailbackMode, OnDrift
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.workload.model import PurgeMode, WorkloadFailover
from rules.kinds.zone.model import ZoneIsolation
from rules.limits.limiters import limits_of
from rules.rulefile.guards import FileGuard, Guards
from rules.rulefile.model import Rule

BECAUSE: Mapping[type[Rule], frozenset[Because]] = {
    model: kind.because for model, kind in KINDS.items() if model not in INTERNAL
}
"""Reasons for which rules act, by kind."""
HELD: Mapping[type[Rule], frozenset[Held]] = {
    model: kind.holds for model, kind in KINDS.items() if model not in INTERNAL
}
"""Reasons for which rules hold, by kind. Those of limits are added where the rule has them."""


def possible(rule: Rule, guards: Sequence[FileGuard] = ()) -> tuple[frozenset[Because], frozenset[Held]]:
    """Give the reasons that this rule can have as it is written, with the limits that hold for it."""
    because, held = set(BECAUSE[type(rule)]), set(HELD[type(rule)])
    match rule:
        case TrafficFailover():
            _of_way_back(rule, because, held)
            if rule.on_all_down is OnAllDown.HOLD:
                because.discard(Because.ALL_DOWN)
            else:
                held.discard(Held.NO_HEALTHY_SECONDARY)
        case ZoneIsolation() if rule.practice is None:
            because.discard(Because.PRACTICE)
            held.discard(Held.PRACTICE_BLOCKED)
        case WorkloadFailover() if rule.policies is None:
            _of_policy(rule, because, held)
    if isinstance(rule, WorkloadFailover | ZoneIsolation) and not rule.backs_off and not _leaves_at_once(rule):
        held.discard(Held.BACKING_OFF)
    if not kind_of(rule).tells:
        held |= {Held.PAUSED, *_limits(rule, guards)}
        if rule.mode is not Mode.DRY_RUN:
            held.add(Held.ACTION_FAILED)
    return frozenset(because), frozenset(held)


def _leaves_at_once(rule: WorkloadFailover | ZoneIsolation) -> bool:
    """True if bad copies leave at once, so that those that replace them back off. Policies, which are not in the file,
    may differ."""
    application = rule.failover.application if isinstance(rule, WorkloadFailover) and rule.failover else None
    return application is not None and not application.decision_conditions.toleration_seconds


def _of_way_back(rule: TrafficFailover, because: set[Because], held: set[Held]) -> None:
    # What only people bring about is no gap in a test.
    because.discard(Because.BY_HAND)
    held -= {Held.OVERRIDDEN, Held.CHANGE_REFUSED}
    if not rule.steps:
        because.discard(Because.RETURNING)
    if rule.primary is not None:
        because.discard(Because.PRIMARY_CHANGED)
    if rule.failback.mode is not FailbackMode.TRIAL:
        because -= {Because.TRIAL, Because.TRIAL_FAILED}
    if not rule.backs_off or rule.failback.mode is FailbackMode.MANUAL:
        held.discard(Held.BACKING_OFF)
    if rule.on_drift is not OnDrift.HOLD:
        held.discard(Held.DRIFTED_BY_HAND)


def _of_policy(rule: WorkloadFailover, because: set[Because], held: set[Held]) -> None:
    held.discard(Held.POLICY_UNUSABLE)
    application = rule.failover.application if rule.failover is not None else None
    cluster = rule.failover.cluster if rule.failover is not None else None
    if application is None:
        because.discard(Because.WORKLOAD_UNHEALTHY)
    if application is None or application.pre_conditions is None:
        held.discard(Held.PRECONDITIONS_NOT_MET)
    if cluster is None:
        because -= {Because.CLUSTER_UNHEALTHY, Because.CLUSTER_TAINTED}
    if not any(one is not None and one.purge_mode is PurgeMode.GRACEFULLY for one in (application, cluster)):
        because -= {Because.REPLACEMENT_HEALTHY, Because.GRACE_ELAPSED}
        held -= {Held.GRACE_EXPIRED, Held.LAST_HEALTHY_COPY}
    if not any(one is not None and one.preserves for one in (application, cluster)):
        held.discard(Held.STATE_UNKNOWN)
    if rule.carrier != "Karmada":
        held.discard(Held.SCHEDULER_OVERRULED)


def _limits(rule: Rule, guards: Sequence[FileGuard]) -> Iterator[Held]:
    limits = limits_of(rule, guards)
    for one in (*limits.own, *limits.shared.values()):
        yield from _of_guard(one)
    if rule.mode is Mode.APPROVE:
        yield from (Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED, Held.REJECTED)


def _of_guard(guard: Guards) -> Iterator[Held]:
    if guard.max_concurrent is not None:
        yield Held.MAX_CONCURRENT
    if guard.rate_per_second is not None:
        yield Held.RATE_LIMITED
    if guard.max_unhealthy is not None or guard.min_healthy is not None:
        yield Held.WIDESPREAD_FAILURE
    if guard.disruption is not None:
        yield Held.DISRUPTED
    if guard.cooldown_seconds:
        yield Held.COOLDOWN
    if guard.blocked_windows:
        yield Held.IN_BLOCKED_WINDOW
    if guard.approval is not None:
        yield from (Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED, Held.REJECTED)
