"""Surplus of divided replicas, and the copies that give it back: without this, each outage would leave more replicas.

When a cluster fails, other copies take its replicas over. When it is back before its copy is purged, that copy stays as
it was, and what the others took over is too many. Whole copies that are too many are in `surplus`.
"""

from __future__ import annotations

from datetime import datetime

from rules.core.group import updated
from rules.kinds.workload.division import webster
from rules.kinds.workload.eviction import bound
from rules.kinds.workload.model import Policy, WorkloadFailover
from rules.kinds.workload.state import WorkloadState


def too_many(rule: WorkloadFailover, policy: Policy, state: WorkloadState) -> int:
    """Number of replicas by which the remaining copies exceed the former total; 0 also while a copy has to leave, or is
    leaving.

    Replicas that a person removes do not count. On a Karmada control plane the scheduler keeps the number.
    """
    if rule.carrier != "Kubernetes" or policy.strategy == "duplicated" or state.wanted_replicas is None:
        return 0
    if any(move.evicted_at is None or move.purge_mode != "Never" for move in state.moves.values()):
        return 0
    stay = bound(state.copies, state.moves)
    return max(sum(copy.replicas or 0 for copy in stay.values()) - state.wanted_replicas, 0)


def noted(rule: WorkloadFailover, policy: Policy, state: WorkloadState, now: datetime) -> WorkloadState:
    """Remember since when there are too many."""
    return updated(state, too_many_since=(state.too_many_since or now) if too_many(rule, policy, state) else None)


def without_them(state: WorkloadState, count: int) -> dict[str, int]:
    """Give the copies that stay, with so many replicas fewer where they were taken over; each keeps one at least.

    Of what it took over each gives its part. Copies that an action never sized have taken nothing over.
    """
    sizes = {name: copy.replicas or 0 for name, copy in bound(state.copies, state.moves).items()}
    over = {
        name: size - max(state.wanted_sizes.get(name, 0), 1)
        for name, size in sizes.items()
        if state.copies[name].placed_at is not None
    }
    over = {name: more for name, more in over.items() if more > 0}
    less = webster(min(count, sum(over.values())), over)
    return {name: size - less.get(name, 0) for name, size in sizes.items()}
