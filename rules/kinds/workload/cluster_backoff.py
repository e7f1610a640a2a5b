"""A cluster that fails again soon after its recovery waits longer before it gets copies, and before it keeps one.

Counted are failures that lasted for the rule's tolerationSeconds, and none in which most clusters failed at once.
"""

from __future__ import annotations

from datetime import datetime

from bus.messages import Health
from rules.core.group import updated
from rules.core.member import Member
from rules.core.values import replace
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import ClusterState
from rules.limits.backoff import BASE_SECONDS, failures_with, longer, times


def noted(
    rule: WorkloadFailover, before: ClusterState, after: ClusterState, member: Member, now: datetime, *, outage: bool
) -> ClusterState:
    """Give the cluster with what its recovery in this step means. `outage`: most clusters are bad at once."""
    if after.waits_until is not None and now >= after.waits_until:
        after = replace(after, waits_until=None)
    if (at := _recovered_at(rule, before, member, now)) is None or outage or not rule.backs_off:
        return after
    tolerated, recovery = rule.window(rule.toleration_seconds), rule.window(rule.recovery_seconds)
    lasted = max(((clock.waiting_since or member.since) - clock.since) for clock in before.clocks.values())
    if lasted < tolerated or not lasted:
        return after
    began = min(clock.since for clock in before.clocks.values())
    failures = failures_with(rule.backoff, before.failures, before.recovered_at, began)
    wait = longer(rule.backoff, rule.recovery_seconds or BASE_SECONDS, failures, least=rule.recovery_seconds)
    until = at + rule.window(wait) - recovery if failures else None
    waits_until = until if until is not None and until > now else None
    return updated(after, failures=failures, recovered_at=at, waits_until=waits_until)


def _recovered_at(rule: WorkloadFailover, state: ClusterState, member: Member, now: datetime) -> datetime | None:
    """Time at which the cluster's failure ended, if it has by this step; None: not, or there was no failure."""
    healthy = member.status is Health.HEALTHY
    good_since = [clock.healthy_since or (member.since if healthy else None) for clock in state.clocks.values()]
    known = [since for since in good_since if since is not None]
    if not known or len(known) < len(good_since):
        return None
    at = max(known) + rule.window(rule.recovery_seconds)
    return at if at <= (now if healthy else member.since) else None


def why(name: str, cluster: ClusterState) -> str:
    """Until when it waits, and why."""
    until = cluster.waits_until.isoformat() if cluster.waits_until is not None else ""
    return f"until {until}: cluster/{name} has failed again {times(cluster.failures)} soon after it had recovered"
