"""Actions that cannot be carried out while the cluster that is left does not answer: they wait until it does.

A copy on an unreachable cluster can neither be marked nor be removed. Its eviction counts as begun all the same: its
replacement must not wait for a dead cluster, and the old copy is purged when the cluster answers, before it may serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bus.messages import Action, Evict, Health, Outcome, Purge
from rules.core.desired import Evidence
from rules.core.group import OutboxEntry
from rules.core.values import replace
from rules.kinds.workload.eviction import evicted
from rules.kinds.workload.inventory import clusters_of
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import UNHEARD, ClusterState, Relocation, WorkloadGroup
from rules.rulefile.targets import encode_segment

UNREACHABLE = "ClusterUnreachable"
"""The carrier's word for a cluster that does not answer."""
UNKNOWN = "UnknownCluster"
"""And for one that the settings do not name (any more)."""
GRACE_SECONDS = 600
"""For a copy that was to go first, and cannot: what Gracefully has by default."""
WHEN_BACK = datetime.max.replace(tzinfo=UTC)
"""Time for "once it answers", no time of the clock: ten thousand purges, each tried every five minutes, would leave no
capacity for other actions."""
WAIT, WAIT_MAX = timedelta(seconds=5), timedelta(minutes=5)
"""Time after a failed purge from which on a look at its copy shows that the cluster answers; doubles with each try. A
cluster may be Unhealthy by its signals, and its API server answer: then the copy is watched, and its purge not lost."""


def failed(rule: WorkloadFailover, group: WorkloadGroup, action: Action, fact: Outcome, at: datetime) -> WorkloadGroup:
    """An eviction that did not reach its cluster has begun: Directly goes on as Gracefully does."""
    state = group.state
    if rule.carrier != "Kubernetes" or not isinstance(action, Evict) or fact.reason not in (UNREACHABLE, UNKNOWN):
        return group
    move: Relocation | None = state.moves.get(action.from_)
    if move is None or move.evicted_at is not None:
        return group
    directly = action.purge_mode == "Directly"
    move = replace(
        move, evicted_at=at, purge_mode="Gracefully" if directly else action.purge_mode,
        grace_seconds=GRACE_SECONDS if directly else action.grace_period_seconds, preserved=action.preserved,
    )  # fmt: skip
    entry = tuple(one for one in group.outbox if one.action.id != action.id)  # it is not sent again
    return replace(group, outbox=entry, state=replace(state, moves=evicted(state.moves, action.from_, move)))


def advance(rule: WorkloadFailover, group: WorkloadGroup, shared_group: WorkloadGroup | None) -> WorkloadGroup:
    """Let purges wait while their cluster is away, and be due as soon as it is back, or as their copy is seen again."""
    if rule.carrier != "Kubernetes" or not any(isinstance(entry.action, Purge) for entry in group.outbox):
        return group
    clusters = clusters_of(shared_group)
    entry = tuple(_waiting(one, clusters, group) for one in group.outbox)
    return group if entry == group.outbox else replace(group, outbox=entry)


def _waiting(entry: OutboxEntry, clusters: Mapping[str, ClusterState], group: WorkloadGroup) -> OutboxEntry:
    if not isinstance(entry.action, Purge) or not entry.failed.startswith(UNREACHABLE):
        return entry
    away = clusters.get(entry.action.from_, UNHEARD).status in (Health.UNHEALTHY, Health.UNKNOWN)
    if away and not _is_seen_since(entry, entry.action.from_, group):
        return replace(entry, retry_at=WHEN_BACK)
    return replace(entry, retry_at=entry.action.decided_at) if entry.retry_at == WHEN_BACK else entry


def _is_seen_since(entry: OutboxEntry, cluster: str, group: WorkloadGroup) -> bool:
    """True if a source has looked at the copy long enough after the purge failed."""
    member, again = group.members.get(_copy(cluster, group)), _again(entry)
    if member is None or again is None:
        return False
    return any(one.source and one.observed_at >= again for one in member.signals.values())


def awaited(group: WorkloadGroup, now: datetime) -> Iterator[Evidence]:
    """Looks at copies whose purge waits for one. They are asked for for some minutes; after that the source of a
    cluster that answers has said it by itself."""
    for entry in group.outbox:
        if not isinstance(entry.action, Purge) or entry.retry_at != WHEN_BACK:
            continue
        target, again = _copy(entry.action.from_, group), _again(entry)
        member = group.members.get(target)
        if member is not None and again is not None and now <= again + WAIT_MAX:
            yield Evidence(target, healthy=member.status is Health.HEALTHY, since=again, unknown=True)


def _again(entry: OutboxEntry) -> datetime | None:
    tries = entry.tries + entry.rounds - 2
    return None if entry.failed_at is None else entry.failed_at + min(WAIT * (1 << min(tries, 10)), WAIT_MAX)


def _copy(cluster: str, group: WorkloadGroup) -> str:
    return f"workload/{encode_segment(cluster)}/{group.object}"
