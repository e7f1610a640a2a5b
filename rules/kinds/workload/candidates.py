"""Clusters that could take a workload, and their order: Karmada's filters, and that a cluster is Healthy now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from bus.messages import Health
from rules.kinds.workload import cluster_backoff as workload_backoff
from rules.kinds.workload.affinity import affine
from rules.kinds.workload.eviction import blocked, unblocked_at
from rules.kinds.workload.model import Policy
from rules.kinds.workload.placement import AffinityTerm, ClusterAffinity, OnInsufficient, SpreadConstraint, Strategy
from rules.kinds.workload.spread import Option
from rules.kinds.workload.state import UNHEARD, ClusterState, Departure, WorkloadState
from rules.kinds.workload.tolerations import has_to_leave, may_come

HOLDS, CHOSEN = 100, 50
"""Scores: it has a copy; a Place that is on its way names it."""


@dataclass(frozen=True, slots=True)
class SchedulingRequest:
    """A workload that has to leave clusters."""

    policy: Policy
    state: WorkloadState
    clusters: Mapping[str, ClusterState]
    leaving: Collection[str]
    """Clusters whose copies are to be replaced, those among them that are gone already included."""
    on_insufficient: OnInsufficient
    now: datetime
    chosen: Collection[str] = ()
    """Clusters that a Place on its way names."""
    anyone: bool = False
    """Clusters that flap and have to wait come into question too."""
    waiting: AbstractSet[str] = frozenset()
    """Clusters that were to be left and are not yet, as their health is unknown now: they keep their copies."""

    @property
    def stay(self) -> dict[str, int]:
        """The copies that stay, with their replicas."""
        gone = {*self.state.moves.keys() - self.waiting, *self.leaving}
        return {name: copy.replicas or 0 for name, copy in self.state.copies.items() if name not in gone}

    @property
    def missing(self) -> int:
        """Number of whole copies to place: one for each that leaves, without those that are surplus."""
        wanted = self.state.wanted_copies
        fewer = len(self.leaving) if wanted is None else wanted - len(self.stay)
        return max(min(fewer, len(self.leaving)), 0)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The clusters that come into question for one group of affinities."""

    tiers: tuple[tuple[Option, ...], ...]
    """In order of preference. Free room and what is held, in numbers also where it is not known."""
    free: Mapping[str, int]
    """Free room alone."""
    refused: tuple[str, ...]
    """Reasons against each of the other clusters."""

    @property
    def options(self) -> tuple[Option, ...]:
        return tuple(option for tier in self.tiers for option in tier)


def opens_at(question: SchedulingRequest) -> datetime | None:
    """Give the moment in which the next cluster is no longer blocked; None: no block ends by itself."""
    ends = (unblocked_at(left, block_seconds(question.policy, left)) for left in question.state.left.values())
    return min((end for end in ends if end is not None and end > question.now), default=None)


def block_seconds(policy: Policy, left: Departure) -> float | None:
    """Seconds for which the policy blocks a cluster that was left for this cause; None: not at all; 0: without end."""
    failover = policy.failover
    behaviour = failover and (failover.application if left.cause == "Application" else failover.cluster)
    return behaviour.block_predecessor_seconds if behaviour else None


def candidates(question: SchedulingRequest, term: ClusterAffinity | None) -> Candidates:
    """Give the clusters of this group of affinities that could have a copy, and those that have one and stay well."""
    overflow = term.overflow_affinities if isinstance(term, AffinityTerm) else ()
    tiers: list[list[str]] = [[] for _ in (term, *overflow)]
    refused: list[str] = []
    stay = question.stay
    unheard = dict.fromkeys(term.cluster_names if term is not None else ())
    for name in sorted({**question.clusters, **unheard, **stay}):
        cluster = question.clusters.get(name, UNHEARD)
        place = next((i for i, one in enumerate((term, *overflow)) if affine_to(one, name, cluster)), None)
        if name in stay and not is_bad(cluster):
            tiers[place or 0].append(name)
        elif place is not None and name not in stay and name not in question.leaving:
            if why := _refusal(question, name, cluster):
                refused.append(f"{name} {why}")
            else:
                tiers[place].append(name)
    return _measured(question, tiers, stay, tuple(refused))


def _measured(
    question: SchedulingRequest, tiers: Sequence[Sequence[str]], held: Mapping[str, int], refused: tuple[str, ...]
) -> Candidates:
    known = {name: state.available for name, state in question.clusters.items() if state.available is not None}
    # An unknown room is taken as enough: the largest known one, or all that is wanted.
    enough = max([*known.values(), total_of(question)])
    free = {name: known.get(name, enough) for tier in tiers for name in tier}
    options = []
    for tier in tiers:
        measured = [
            Option(name, HOLDS if name in held else CHOSEN * (name in question.chosen), free[name] + held.get(name, 0))
            for name in tier
        ]
        heard = {name: question.clusters.get(name, UNHEARD).status is not None for name in tier}
        measured.sort(key=lambda one: (-one.score, not heard[one.name], -one.available, one.name))
        options.append(tuple(measured))
    return Candidates(tuple(options), free, refused)


def affine_to(affinity: ClusterAffinity | None, name: str, cluster: ClusterState) -> bool:
    return affinity is None or affine(affinity, name, cluster.labels, _fields(cluster))


def _fields(cluster: ClusterState) -> dict[str, str]:
    fields = {"region": cluster.region, "zone": cluster.zone, "provider": cluster.provider}
    return {key: value for key, value in fields.items() if value}


def is_bad(cluster: ClusterState) -> bool:
    return bool(cluster.clocks) or cluster.gone or cluster.status not in (None, Health.HEALTHY)


def _refusal(question: SchedulingRequest, name: str, cluster: ClusterState) -> str:
    """Reason why no new copy may be placed on this cluster; empty: it may."""
    state, policy = question.state, question.policy
    if cluster.gone or (not cluster.listed and cluster.status is None):
        return "is not known"
    if name in state.moves:
        return "is being left"
    if cluster.status not in (None, Health.HEALTHY):
        return f"is {cluster.status}"
    if cluster.clocks:
        return "has only just recovered"
    if cluster.waits_until is not None and not question.anyone and name not in question.chosen:
        return f"waits {workload_backoff.why(name, cluster)}"
    if name in state.left and blocked(state.left[name], block_seconds(policy, state.left[name]), question.now):
        return "was left and is blocked"
    taints = (*cluster.taints, *(taint for some in cluster.by_rule.values() for taint in some))
    tolerations = policy.placement.cluster_tolerations
    if not may_come(taints, tolerations) or has_to_leave(cluster.acute, tolerations):
        return "is tainted"  # also where it would have to be left again after a while
    if missing := [one for one in policy.placement.spread_constraints if not group_of(one, name, cluster)]:
        return f"has no {missing[0].field or missing[0].spread_by_label}"
    if (
        cluster.available is not None
        and strategy_of(question) == "duplicated"
        and cluster.available < each_of(question)
    ):
        return f"has room for {cluster.available} of {each_of(question)} replicas"
    return ""


def group_of(constraint: SpreadConstraint, name: str, cluster: ClusterState) -> str:
    """Group of a cluster in this constraint; empty: it has no such field or label."""
    if constraint.field is None:
        return cluster.labels.get(constraint.spread_by_label or "", "")
    return name if constraint.field == "cluster" else _fields(cluster).get(constraint.field, "")


def _counts(question: SchedulingRequest) -> Iterator[int]:
    copies, moves = question.state.copies, question.state.moves
    for name in {**copies, **dict.fromkeys(question.leaving)}:
        if name in question.leaving or name not in moves or name in question.waiting:
            copy = copies.get(name)
            yield (copy.replicas if copy is not None else moves[name].replicas) or 0


def each_of(question: SchedulingRequest) -> int:
    """Replicas of each copy of a workload that is not divided."""
    return max(_counts(question), default=0) if question.state.replicas is None else question.state.replicas


def total_of(question: SchedulingRequest) -> int:
    if question.state.replicas is not None:
        return question.state.replicas
    total = sum(_counts(question))
    return total if question.state.wanted_replicas is None else min(total, question.state.wanted_replicas)


def strategy_of(question: SchedulingRequest) -> Strategy:
    """Placement strategy; a workload without replicas, or with none at the moment, cannot be divided."""
    return question.policy.strategy if total_of(question) else "duplicated"
