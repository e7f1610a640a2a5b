"""The cluster inventory of a WorkloadFailover rule: clusters, and their health as taints with times.

A cluster that is Unhealthy has the taint not-ready, one that is Unknown the taint unreachable. Each has its own clock:
it waits while the other is there, and both end when the cluster has been Healthy for recoverySeconds. So a cluster that
is now the one and now the other is left in the end, and one that only could not be seen for a while is not left early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from bus.messages import Cluster, ClusterTaints, Fact, Health, Taint
from rules.core.desired import DesiredState
from rules.core.group import updated
from rules.core.member import Member
from rules.core.timers import NO_TIME, Stopwatch, advanced, runs
from rules.core.values import replace, without
from rules.kinds.workload import cluster_backoff as workload_backoff
from rules.kinds.workload import outage as workload_outage
from rules.kinds.workload import rule_taints
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import ClusterState, WorkloadGroup
from rules.kinds.workload.tolerations import NOT_READY, UNREACHABLE, added, system_taint
from rules.rulefile.model import UnknownAs

CLUSTER_INVENTORY = "*"
"""The object of the group with the cluster inventory; no workload is called so."""


def clusters_of(shared_group: WorkloadGroup | None) -> Mapping[str, ClusterState]:
    """Give the clusters that the inventory knows."""
    return shared_group.state.clusters if shared_group is not None else {}


def observe(rule: WorkloadFailover, group: WorkloadGroup, fact: Fact, now: datetime) -> WorkloadGroup:
    """Fold in what is said of a cluster. A late fact never undoes a newer one."""
    match fact:
        case Cluster():
            return _with(rule, group, fact.name, _listed(clusters_of(group).get(fact.name), fact, now))
        case ClusterTaints():
            return _with(rule, group, fact.cluster, _tainted(clusters_of(group).get(fact.cluster), fact, now))
        case _:
            return group


def _listed(known: ClusterState | None, fact: Cluster, now: datetime) -> ClusterState:
    at = min(fact.observed_at, now)
    state = known or ClusterState()
    if state.observed_at is not None and at < state.observed_at:
        return state
    # A taint without a time would be tolerated without end: it is from when it was first observed.
    wanted = {(taint.key, taint.effect) for taint in fact.taints}
    kept = tuple(taint for taint in state.taints if (taint.key, taint.effect) in wanted)
    timed = tuple(taint for taint in fact.taints if taint.time_added is not None)
    return replace(
        state if not fact.exists else replace(
            state, labels=dict(fact.labels), region=fact.region, zone=fact.zone, provider=fact.provider,
        ),
        listed=fact.exists, gone=not fact.exists, available=fact.available_replicas,
        observed_at=state.observed_at if state.gone and not fact.exists else at,
        taints=added(added(timed, kept, at), fact.taints, at),
    )  # fmt: skip


def _tainted(known: ClusterState | None, fact: ClusterTaints, now: datetime) -> ClusterState:
    at = min(fact.observed_at, now)
    state = known or ClusterState()
    said = state.said_at.get(fact.rule)
    if said is not None and at < said:
        return state
    stamped = added((), fact.taints, at)
    by_rule = {**state.by_rule, fact.rule: stamped} if stamped else without(state.by_rule, fact.rule)
    seen = rule_taints.as_seen(fact)
    seen_by_rule = without(state.seen_by_rule, fact.rule) if seen is None else {**state.seen_by_rule, fact.rule: seen}
    return replace(
        state, by_rule=dict(sorted(by_rule.items())), said_at={**state.said_at, fact.rule: at},
        seen_by_rule=seen_by_rule, taints=rule_taints.still_listed(state, fact.rule, stamped, at),
    )  # fmt: skip


def forget(rule: WorkloadFailover, group: WorkloadGroup, acts: Callable[[str, str], bool]) -> WorkloadGroup:
    """Give the inventory without the taints of rules that put none on a cluster any more. `acts(rule, cluster)`."""
    for name, state in clusters_of(group).items():
        by_rule = {taints_of: taints for taints_of, taints in state.by_rule.items() if acts(taints_of, name)}
        if len(by_rule) < len(state.by_rule):
            said_at = {said_of: at for said_of, at in state.said_at.items() if said_of in by_rule}
            seen = {seen_of: one for seen_of, one in state.seen_by_rule.items() if seen_of in by_rule}
            state = replace(state, by_rule=by_rule, said_at=said_at, seen_by_rule=seen)
            group = _with(rule, group, name, state)
    return group


def without_signals(group: WorkloadGroup, is_foreign: Callable[[str, str], bool]) -> WorkloadGroup:
    """Give the inventory without signals that say nothing of its clusters. `is_foreign(target, signal)`."""
    for target, member in group.members.items():
        signals = {name: one for name, one in member.signals.items() if not is_foreign(target, name)}
        if len(signals) == len(member.signals):
            continue
        members = {**group.members, target: replace(member, signals=signals)}
        if not signals:
            del members[target]
            kind, _, name = target.partition("/")
            known = clusters_of(group).get(name) if kind == "cluster" else None
            if known is not None:
                quiet = replace(known, status=None, known=False, clocks={}, acute=())
                clusters = {**clusters_of(group), name: quiet}
                group = replace(group, state=replace(group.state, clusters=clusters))
        group = replace(group, members=members)
    return group


def heard(rule: WorkloadFailover, group: WorkloadGroup, target: str, at: datetime) -> WorkloadGroup:
    """An observation of a cluster has been folded in: let its clocks know at once, so that nothing between is lost."""
    kind, _, name = target.partition("/")
    return _counted(rule, _looked_at(rule, group, name, group.members[target], at), at) if kind == "cluster" else group


def advance(rule: WorkloadFailover, group: WorkloadGroup, now: datetime) -> WorkloadGroup:
    """Let time pass: clusters go silent, and recover."""
    for target, member in group.members.items():
        group = _looked_at(rule, group, target.partition("/")[2], member, now)
    return _counted(rule, group, now)


def _counted(rule: WorkloadFailover, group: WorkloadGroup, at: datetime) -> WorkloadGroup:
    """Begin or end an outage, by how many clusters are bad now."""
    state = group.state
    outage, clusters = workload_outage.assess(rule, state.outage, state.clusters, at)
    if outage == state.outage:
        return group
    group = replace(group, state=replace(state, outage=outage))
    for name, cluster in clusters.items():
        group = _with(rule, group, name, cluster)
    return group


def _looked_at(rule: WorkloadFailover, group: WorkloadGroup, name: str, member: Member, now: datetime) -> WorkloadGroup:
    state = clusters_of(group).get(name) or ClusterState()
    if rule.signals is not None and not any(signal in member.signals for signal in rule.signals):
        return group  # none of those that the rule uses has ever spoken of it
    known = state.known or member.settled is not None
    clocks = {}
    for key in (NOT_READY, UNREACHABLE):
        if not known and rule.treat_unknown_as is UnknownAs.HOLD:
            break  # its health was never known: that is no failure
        is_bad = False if member.status is Health.HEALTHY else system_taint(member.status) == key or None
        before = state.clocks.get(key)
        recovery = rule.window(rule.recovery_seconds) if _is_tainted(rule, before, member) else NO_TIME
        clock = advanced(before, is_bad, member.since, now, recovery, dated=member.is_dated)
        if clock is not None:
            clocks[key] = clock
    after = updated(state, status=member.status, known=known, clocks=clocks)
    outage = group.state.outage is not None
    return _with(rule, group, name, workload_backoff.noted(rule, state, after, member, now, outage=outage))


def _is_tainted(rule: WorkloadFailover, clock: Stopwatch | None, member: Member) -> bool:
    """True if the cluster was bad for the rule's toleration: before that, one moment in which it is good ends it."""
    return clock is not None and clock.since + rule.window(rule.toleration_seconds) <= (
        clock.waiting_since or member.since
    )  # fmt: skip


def _with(rule: WorkloadFailover, group: WorkloadGroup, name: str, state: ClusterState) -> WorkloadGroup:
    """Give the group with this cluster, and the taints by which it is left."""
    later = rule.window(rule.toleration_seconds)
    own = [
        Taint(key=key, effect="NoExecute", time_added=clock.since + later)
        for key, clock in state.clocks.items()
        if runs(clock)
    ]
    if state.gone and state.observed_at is not None:
        # It has no signal any more, and nothing looks after the copies there.
        own.append(Taint(key=UNREACHABLE, effect="NoExecute", time_added=state.observed_at + later))
    others = (taint for taint in rule_taints.lasting(state) if taint.effect == "NoExecute")
    state = updated(state, acute=(*own, *others))
    if clusters_of(group).get(name) == state:
        return group
    clusters = dict(sorted({**clusters_of(group), name: state}.items()))
    return replace(group, state=replace(group.state, clusters=clusters))


def desire(rule: WorkloadFailover, group: WorkloadGroup, now: datetime) -> DesiredState:
    """The inventory does nothing; it wakes when a cluster has recovered."""
    recovery = rule.window(rule.recovery_seconds)
    moments = [
        clock.healthy_since + recovery
        for state in clusters_of(group).values()
        for clock in state.clocks.values()
        if clock.healthy_since is not None
    ]
    moments += [state.waits_until for state in clusters_of(group).values() if state.waits_until is not None]
    return DesiredState(requeue_at=min((moment for moment in moments if moment > now), default=None))


def dependents(
    _rule: WorkloadFailover, before: WorkloadGroup, after: WorkloadGroup, others: Iterable[WorkloadGroup]
) -> Iterable[WorkloadGroup]:
    """Give the workloads that have to be looked at again: those on a cluster that has changed, and those that wait.

    Room and labels alone do not matter: who waits for them looks by itself.
    """
    old, new = clusters_of(before), clusters_of(after)
    if old is new:
        return ()
    changed = {
        name for name in {**old, **new} if name not in old or name not in new or _vital(old[name]) != _vital(new[name])
    }
    return (group for group in others if changed and _depends_on(group, changed))


def _depends_on(group: WorkloadGroup, changed: AbstractSet[str]) -> bool:
    state = group.state
    return group.held is not None or bool(state.moves or group.outbox) or not changed.isdisjoint(state.copies)


def _vital(state: ClusterState) -> tuple[object, ...]:
    taints = state.taints, state.by_rule, state.acute
    return state.listed, state.gone, state.status, taints, state.clocks, state.waits_until
