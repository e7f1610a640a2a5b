"""Which reasons a rule can have, as it is written: those of its kind, and those of the limits that hold for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bus.messages import Mode
from rules.core.reasons import Because, Held
from rules.limits.limiters import limits_of
from rules.rulefile.failback import FailbackMode, OnDrift
from rules.rulefile.guards import FileGuard, Guards
from rules.rulefile.model import Notification, OnAllDown, Rule, TrafficFailover
from rules.rulefile.workload import ClusterTaint, PurgeMode, WorkloadFailover
from rules.rulefile.zone import ZoneIsolation

BECAUSE: Mapping[type[Rule], frozenset[Because]] = {
    TrafficFailover: frozenset({
        Because.PRIMARY_UNHEALTHY, Because.PRIMARY_HEALTHY, Because.SECONDARIES_CHANGED, Because.RETURNING,
        Because.ALL_DOWN, Because.PRIMARY_CHANGED, Because.DRIFT, Because.TRIAL, Because.TRIAL_FAILED, Because.BY_HAND,
    }),
    WorkloadFailover: frozenset({
        Because.CLUSTER_UNHEALTHY, Because.CLUSTER_TAINTED, Because.WORKLOAD_UNHEALTHY, Because.TOLERATION_ELAPSED,
        Because.RULE_CHANGED, Because.REPLACEMENT_HEALTHY, Because.GRACE_ELAPSED, Because.RECOVERED,
    }),
    ClusterTaint: frozenset({Because.TARGET_CHANGED}),
    Notification: frozenset({Because.TARGET_CHANGED}),
    ZoneIsolation: frozenset({
        Because.ZONE_UNHEALTHY, Because.ZONE_RECOVERED, Because.COMMANDED, Because.PRACTICE, Because.ABORTED,
        Because.NODES_JOINED,
    }),
}  # fmt: skip
"""Why a rule of this kind acts."""
HELD: Mapping[type[Rule], frozenset[Held]] = {
    TrafficFailover: frozenset({
        Held.NO_HEALTHY_SECONDARY, Held.UNKNOWN_PRIMARY, Held.TARGET_UNKNOWN, Held.ROUTE_NOT_FOUND, Held.ROUTE_UNUSABLE,
        Held.BACKING_OFF, Held.DRIFTED_BY_HAND, Held.OVERRIDDEN, Held.CHANGE_REFUSED,
    }),
    WorkloadFailover: frozenset({
        Held.NO_LANDING_PLACE, Held.GRACE_EXPIRED, Held.LAST_HEALTHY_COPY, Held.PRECONDITIONS_NOT_MET,
        Held.WORKLOAD_NOT_FOUND, Held.POLICY_UNUSABLE, Held.STATE_UNKNOWN, Held.SCHEDULER_OVERRULED,
        Held.TARGET_UNKNOWN, Held.BACKING_OFF,
    }),
    ClusterTaint: frozenset({Held.TARGET_UNKNOWN}),
    Notification: frozenset(),
    ZoneIsolation: frozenset({
        Held.CONTROL_PLANE_UNREACHABLE, Held.ZONES_UNKNOWN, Held.ZONE_NOT_FOUND, Held.SINGLE_ZONE,
        Held.MAX_ISOLATED_ZONES, Held.ANOTHER_IN_PROGRESS, Held.COOLDOWN, Held.WIDESPREAD_FAILURE,
        Held.TOLERATION_NOT_ELAPSED, Held.ONE_SOURCE_ONLY, Held.SINGLE_ZONE_SERVICES, Held.QUORUM_AT_RISK,
        Held.REMAINING_ZONES_UNHEALTHY, Held.INSUFFICIENT_CAPACITY, Held.CHANGE_REFUSED, Held.START_EXPIRED,
        Held.STEP_FAILED, Held.RETRIES_EXHAUSTED, Held.ISOLATION_EXPIRED, Held.ZONE_NOT_RECOVERED,
        Held.IN_BLOCKED_WINDOW, Held.ISOLATION_STANDS, Held.OVERRIDDEN, Held.PRACTICE_BLOCKED, Held.BACKING_OFF,
    }),
}  # fmt: skip
"""Why a rule of this kind does nothing. Limits are added where the rule has them."""
LIVE = frozenset(
    {Held.CATCHING_UP, Held.AWAITING_GUARD, Held.ALL_ZERO, Held.SOURCE_SILENT, Held.LIST_DOUBTED, Held.HEALTHY_NOW}
)
"""Not in a rule test: facts are read in time there, guards answer at once, and AllZero only stops a mistake of ours."""


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
    if isinstance(rule, WorkloadFailover | ZoneIsolation) and not rule.backs_off:
        held.discard(Held.BACKING_OFF)
    if not isinstance(rule, Notification):
        held |= {Held.PAUSED, *_limits(rule, guards)}
        if rule.mode is not Mode.DRY_RUN:
            held.add(Held.ACTION_FAILED)
    return frozenset(because), frozenset(held)


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
