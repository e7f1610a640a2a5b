"""Result of an eviction that the Karmada carrier takes back, in a rehearsal, which has no control plane.

The carrier asks the control plane which copies are Healthy; a rehearsal uses what its history says of them. Where
that says nothing, the copies stay, as with the carrier. Spread by region is Karmada's own business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from bus.messages import Action, CancelEviction, Evict, Fact, Health, Place, Purge, Workload, WorkloadCopy
from rules.engine.groups import GroupStore
from rules.kinds.workload.causes import member_of, policy_of
from rules.kinds.workload.eviction import bound
from rules.kinds.workload.inventory import CLUSTER_INVENTORY, clusters_of
from rules.kinds.workload.karmada_room import LeavingCopy, Limits, taken_back
from rules.kinds.workload.model import Policy, WorkloadFailover
from rules.kinds.workload.state import UNHEARD, WorkloadGroup

LeftCluster = tuple[str, str, str]
"""Rule, object and the cluster that is left."""


class RehearsedKarmada:
    """State of the rehearsed carrier: bindings and labels of the workloads in the history."""

    def __init__(self, group_store: GroupStore) -> None:
        self._group_store = group_store
        self._before: dict[LeftCluster, tuple[str, ...]] = {}
        """Clusters that had copies when a cluster was left."""
        self._labels: dict[str, Mapping[str, str]] = {}
        """Those of each workload: a rule that selects by them has to find them on its copies."""

    def heard(self, facts: Sequence[Fact]) -> None:
        """Take note of workloads that are listed."""
        self._labels |= {fact.object: fact.labels for fact in facts if isinstance(fact, Workload | WorkloadCopy)}

    def carried_out(self, action: Action, now: datetime) -> Iterator[WorkloadCopy]:
        """Give the copies that go, or change, with an action that is just done; the groups do not know of it yet."""
        group = self._group_store.groups.get((action.rule, action.object))
        rule = self._group_store.rules.get(action.rule)
        if group is None or not isinstance(rule, WorkloadFailover) or rule.carrier != "Karmada":
            return
        match action:
            case Place() | Evict():
                leaving = (action.from_,) if isinstance(action, Evict) else action.leaving
                names = tuple(sorted({*bound(group.state.copies, group.state.moves), *leaving}))
                for name in leaving:
                    self._before.setdefault((action.rule, action.object, name), names)
            case Purge() | CancelEviction():
                before = self._before.pop((action.rule, action.object, action.from_), ())
                if isinstance(action, CancelEviction):
                    yield from self._taken_back(rule, group, action, before, now)
            case _:
                pass

    def _taken_back(
        self, rule: WorkloadFailover, group: WorkloadGroup, action: CancelEviction, before: Sequence[str], now: datetime
    ) -> Iterator[WorkloadCopy]:
        policy, state = policy_of(rule, group.state), group.state
        if not isinstance(policy, Policy) or action.from_ not in state.copies:
            return
        was = {name: copy.replicas for name, copy in state.copies.items()}
        listed = {name: was[name] for name in bound(state.copies, state.moves)}
        left = LeavingCopy(action.from_, was[action.from_], before)
        found = taken_back(listed, left, limits_of(policy, state.replicas), self._healthy(group))
        if found is None:
            return
        labels = dict(self._labels.get(action.object, {}))
        for name in (*listed, action.from_):
            if name not in found or found[name] != was[name]:
                yield WorkloadCopy(
                    **action.workload.model_dump(), cluster=name, labels=labels, replicas=found.get(name),
                    exists=name in found, observed_at=now,
                )  # fmt: skip

    def _healthy(self, group: WorkloadGroup) -> frozenset[str]:
        """Give the clusters whose copy is Healthy, as far as the history says."""
        clusters = clusters_of(self._group_store.groups.get((group.rule, CLUSTER_INVENTORY)))
        members = {name: member_of(group, name, copy) for name, copy in group.state.copies.items()}
        return frozenset(
            name
            for name, member in members.items()
            if member is not None
            and member.status is Health.HEALTHY
            and clusters.get(name, UNHEARD).status in (None, Health.HEALTHY)
        )


def limits_of(policy: Policy, replicas: int | None) -> Limits:
    """Read a policy as Karmada's scheduler does, which passes spread constraints over for static weights."""
    divided = bool(replicas) and policy.strategy != "duplicated"
    spread = () if divided and policy.strategy == "static" else policy.placement.spread_constraints
    most = [one.max_groups for one in spread if one.field == "cluster" and one.max_groups]
    return Limits(min(most, default=None), None if divided else replicas, replicas if divided else None)
