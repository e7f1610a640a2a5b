"""Premises of placements: what a workload leaves is bad, where it goes is healthy, and what is purged is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Action, Evict, Place, Purge, Workload, WorkloadCopy
from rules.core.premises import Alternatives, DecisionContext, Premise
from rules.core.reasons import Because
from rules.core.timers import runs
from rules.kinds.workload.inventory import clusters_of
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import UNHEARD, WorkloadState
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import encode_segment

Context = DecisionContext[WorkloadState]


def premises(rule: WorkloadFailover, action: Action, context: Context) -> Iterator[Alternatives]:
    """Give what an action rests on. A copy that stays after all rests on nothing: that is the way back to safety."""
    match action:
        case Place() if not _is_begun(action, context):
            yield from _left(rule, action, action.because, action.leaving[:1], context)
            yield from _taking(rule, action, context)
        case Evict():
            yield from _left(rule, action, action.detail.partition(":")[0], (action.from_,), context)
        case Purge():
            yield from _replaced(rule, action, context)


def _is_begun(action: Place, context: Context) -> bool:
    """True if it is the second half of a move whose copy is evicted first."""
    moves = context.before.state.moves if context.before is not None else {}
    evicted = any(name in moves and moves[name].evicted_at is not None for name in action.leaving)
    return bool(action.leaving) and (evicted or context.has_ended(Evict))


def _left(
    rule: WorkloadFailover, action: Place | Evict, because: str, names: tuple[str, ...], context: Context
) -> Iterator[Alternatives]:
    """Premises of what is left: the cluster or the copy is bad. One that others have tainted may be well."""
    if because == Because.RECOVERED:
        return  # a copy that is too many, as what it was placed for is back
    for name in names:
        if not _leaves_anyhow(name, because, context):
            yield (_bad(rule, f"cluster/{encode_segment(name)}"), _bad(rule, _copy(action, name)))


def _bad(rule: WorkloadFailover, target: str) -> Premise:
    silence = rule.treat_unknown_as is UnknownAs.UNHEALTHY
    return Premise(target, healthy=False, unknown=True, silence=silence, signals=rule.signals)


def _leaves_anyhow(name: str, because: str, context: Context) -> bool:
    """True if another writer's taint makes workloads leave the cluster, or it is a member no more."""
    if context.shared_group is None:
        return because == Because.CLUSTER_TAINTED
    cluster = clusters_of(context.shared_group).get(name, UNHEARD)
    own = {key for key, clock in cluster.clocks.items() if runs(clock)}
    return cluster.gone or any(taint.key not in own for taint in cluster.acute)


def _taking(rule: WorkloadFailover, action: Place, context: Context) -> Iterator[Alternatives]:
    """Premises of what takes over: the clusters that get a copy, or the copies that serve with fewer replicas."""
    if not action.leaving and action.because == Because.RECOVERED:
        for name in action.clusters:
            yield (Premise(_copy(action, name), healthy=True, signals=rule.signals),)
        return
    copies = context.before.state.copies if context.before is not None else {}
    known = clusters_of(context.shared_group)
    for name in sorted(action.clusters.keys() - copies.keys()):
        if context.shared_group is None or known.get(name, UNHEARD).status is not None:
            yield (Premise(f"cluster/{encode_segment(name)}", healthy=True, unobserved=True, signals=rule.signals),)


def _replaced(rule: WorkloadFailover, action: Purge, context: Context) -> Iterator[Alternatives]:
    """Premises of a purge: a copy that stays is healthy; once the grace period is over, the one that goes may be bad.

    Not all that stay: another one may have turned bad in this very step, and leave too, or have come back in it.
    """
    if context.before is None:
        return
    state = context.before.state
    begun = {name for name, move in state.moves.items() if move.placed or move.evicted_at is not None}
    stay = state.copies.keys() - begun - _gone(context) - {action.from_}
    healthy = [Premise(_copy(action, name), healthy=True, signals=rule.signals) for name in sorted(stay)]
    if action.because == Because.REPLACEMENT_HEALTHY and (healthy or not context.has_ended(Place)):
        yield tuple(healthy)
    elif action.because == Because.GRACE_ELAPSED:
        cluster, copy = (f"cluster/{encode_segment(action.from_)}", _copy(action, action.from_))
        bad = (
            Premise(one, healthy=False, unknown=True, silence=True, unobserved=one == copy) for one in (cluster, copy)
        )
        yield (*healthy, *bad)


def _gone(context: Context) -> set[str]:
    """Clusters that have no copy, by the inventory that came with the decision."""
    gone = set[str]()
    for fact in context.facts:
        if isinstance(fact, WorkloadCopy) and not fact.exists:
            gone.add(fact.cluster)
        elif isinstance(fact, Workload) and context.before is not None:
            gone |= context.before.state.copies.keys() - fact.clusters.keys()
    return gone


def _copy(action: Place | Evict | Purge, cluster: str) -> str:
    return f"workload/{encode_segment(cluster)}/{action.workload.object}"
