"""Causes for which a workload leaves a cluster: their stopwatches, the end of their toleration, and their end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial

from pydantic import ValidationError

from bus.messages import Evict, Health, Mode, Place, Taint
from rules.core.group import updated
from rules.core.member import Member
from rules.core.reasons import Because
from rules.core.timers import NO_TIME, advanced, first_of, runs
from rules.core.values import replace
from rules.kinds.workload import checks, copy_backoff, lost_moves, replica_surplus, rule_taints, surplus
from rules.kinds.workload.constraints import constraint_limits
from rules.kinds.workload.eviction import behaviour_of, fails_at
from rules.kinds.workload.inventory import clusters_of
from rules.kinds.workload.model import Policy, PurgeMode, WorkloadFailover
from rules.kinds.workload.state import UNHEARD, Cause, ClusterState, Copy, Relocation, WorkloadGroup, WorkloadState
from rules.kinds.workload.tolerations import (
    NOT_READY,
    UNREACHABLE,
    WindowOf,
    has_to_leave,
    leaves_at,
    with_defaults,
)
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import encode_segment
from rules.rulefile.yaml import Document


@dataclass(frozen=True, slots=True)
class EvictionDue:
    """The toleration of a copy's cluster, or of the copy itself, ends at this moment."""

    at: datetime
    cause: Cause
    because: Because
    detail: str
    word: Member | None = None
    """The cluster as a rule knows it for whose taint it is left, and whose word it needs; None: it needs none."""


def policy_of(rule: WorkloadFailover, state: WorkloadState) -> Policy | str | None:
    """Give the policy that governs a workload, why it cannot be used, or None where the rule honours none for it."""
    if rule.policies is None:
        return rule
    added = rule.policies.failover.model_dump_json(by_alias=True, exclude_unset=True)
    return _read(state.policy, added) if state.policy is not None else None


@lru_cache(maxsize=1024)
def _read(text: str, added: str) -> Policy | str:
    """Read a policy, with what the rule adds to the failovers that it has."""
    body = json.loads(text)
    failover = body.get("failover")
    for kind, more in json.loads(added).items():
        if isinstance(failover, dict) and isinstance(failover.get(kind), dict):
            known = failover[kind].get("decisionConditions") or {}
            if "decisionConditions" in more:
                more["decisionConditions"] = {**known, **more["decisionConditions"]}
            failover[kind] |= more
    try:
        policy = Policy.model_validate_json(json.dumps(body), by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    # What a rule file may not say, a policy may not say either: one that is suspended moves nothing.
    found = checks.policy(policy, Document("", body), ())
    wrong = next((one for one in found if one.severity == "error"), None)
    return f"{wrong.path}: {wrong.message}" if wrong is not None else policy


def member_of(group: WorkloadGroup, cluster: str, copy: Copy) -> Member | None:
    """Give what is known of a copy's health; None where nothing was heard since it was placed."""
    member = group.members.get(f"workload/{encode_segment(cluster)}/{group.object}")
    if member is None or copy.placed_at is None:
        return member
    newest = max((signal.observed_at for signal in member.signals.values()), default=None)
    return member if newest is not None and newest > copy.placed_at else None


def ticked_copy(
    rule: WorkloadFailover, policy: Policy, copy: Copy, member: Member, now: datetime, *, leaves: bool
) -> Copy:  # fmt: skip
    """Let a copy's clock know how the copy is. `leaves`: whether its replacement is placed, or it is evicted."""
    application = policy.failover.application if policy.failover is not None else None
    bad = application.decision_conditions.healthy_state if application is not None else (Health.UNHEALTHY,)
    if rule.treat_unknown_as is UnknownAs.UNHEALTHY:
        bad = (*bad, Health.UNKNOWN)
    is_bad = True if member.status in bad else None if member.status is Health.UNKNOWN else False
    known = is_bad is not None or member.settled is not None
    # What was said of this cluster's copy before this one was placed is about another copy.
    since = member.since
    if copy.placed_at is not None:
        words = [one.observed_at for one in member.signals.values() if one.observed_at > copy.placed_at]
        since = max(since, copy.placed_at if copy.first_status_at is not None else min(words, default=copy.placed_at))
    clock = copy.bad
    if not (is_bad and runs(clock) and Health.UNKNOWN in bad and Health.UNHEALTHY in bad):
        # Where both are bad, going from one to the other is no break.
        # Before that nothing goes back: one moment in which it is good begins its toleration again.
        recovery = rule.window(rule.recovery_seconds) if leaves else NO_TIME
        clock = advanced(clock, is_bad, since, now, recovery, dated=member.is_dated)
    return updated(
        copy, first_status_at=copy.first_status_at or (since if known else None), bad=clock,
        once_healthy=(
            copy.once_healthy or member.status is Health.HEALTHY or (copy.placed_at is None and member.settled is True)
        ),
    )  # fmt: skip


def next_due(
    rule: WorkloadFailover, policy: Policy, cluster: ClusterState, copy: Copy, now: datetime
) -> EvictionDue | None:
    """Give when and why the workload leaves this cluster, by the current state; None: nothing runs against it."""
    return first_due(all_dues(rule, policy, cluster, copy, now), now)


def all_dues(
    rule: WorkloadFailover, policy: Policy, cluster: ClusterState, copy: Copy, now: datetime
) -> Sequence[EvictionDue]:
    """Give all that runs against a copy, each by itself."""
    return [*_by_cluster(rule, policy, cluster, now), *_by_application(rule.window, policy, copy)]


def first_due(dues: Iterable[EvictionDue], now: datetime) -> EvictionDue | None:
    """Give the one by which the workload leaves. Of several that are over, one that waits for the word of a rule comes
    last: its source may be silent."""

    def place(due: EvictionDue) -> tuple[int, datetime]:
        if due.at > now:
            return 3, due.at
        if due.word is None:
            return 1, due.at
        return (0 if rule_taints.is_fresh(due.word, due.at, now) else 2), due.at

    return min(dues, key=place, default=None)


def _by_cluster(
    rule: WorkloadFailover, policy: Policy, cluster: ClusterState, now: datetime
) -> Iterator[EvictionDue]:  # fmt: skip
    window = rule.window
    if not cluster.acute or policy.failover is None or policy.failover.cluster is None:
        return
    standing = [taint for taint in cluster.acute if taint.time_added is None or taint.time_added <= now]
    coming = [taint.time_added for taint in cluster.acute if taint.time_added is not None and taint.time_added > now]

    def end_for(taints: Iterable[Taint]) -> datetime | None:
        return leaves_at(taints, with_defaults(policy.placement.cluster_tolerations), window)

    at = first_of(*coming, end_for(standing))
    if at is None:
        return
    own = {key for key, clock in cluster.clocks.items() if runs(clock)}
    names = ", ".join(taint.key for taint in standing) or min(own)
    # By whose taint the time is over: the cluster's own health, or what another writer has put there.
    others = [taint for taint in cluster.acute if taint.key not in own]
    because = Because.CLUSTER_TAINTED if not own or end_for(others) == at else Because.CLUSTER_UNHEALTHY
    word = rule_taints.word_for(cluster, others, end_for, now) if because is Because.CLUSTER_TAINTED else None
    detail = f"{'deleted' if cluster.gone else cluster.status or 'tainted'}: {names}"
    yield EvictionDue(at, "Cluster", because, detail, word)
    by_own = end_for(taint for taint in standing if taint.key in own)
    seen = cluster.status is Health.UNHEALTHY or rule.treat_unknown_as is UnknownAs.UNHEALTHY
    if word is not None and by_own is not None and seen:
        yield EvictionDue(by_own, "Cluster", Because.CLUSTER_UNHEALTHY, detail)


def _by_application(window: WindowOf, policy: Policy, copy: Copy) -> Iterator[EvictionDue]:
    application = policy.failover.application if policy.failover is not None else None
    at = fails_at(window, application, copy) if application is not None else None
    if at is not None and copy.bad is not None:
        yield EvictionDue(at, "Application", Because.WORKLOAD_UNHEALTHY, f"bad since {copy.bad.since.isoformat()}")


def over(policy: Policy, move: Relocation, cluster: ClusterState, copy: Copy | None) -> bool:
    """True if the cause of a move has passed: its stopwatch has ended, not merely paused.

    Of a move that was found again the cause is not known: then the copy has to be proven good as well.
    """
    if move.cause == "Application" or (move.found and copy is not None and copy.bad is not None):
        return copy is None or copy.bad is None
    if policy.failover is None or policy.failover.cluster is None:
        return True
    tolerations = with_defaults(policy.placement.cluster_tolerations)
    waits = any(key in cluster.clocks for key in (NOT_READY, UNREACHABLE))
    return not waits and not has_to_leave(cluster.acute, tolerations)


def returns(policy: Policy, move: Relocation, cluster: ClusterState, copy: Copy | None) -> bool:
    """True if a copy that has its replacement stays after all: its cause has passed, and its cluster is not bad."""
    counts = policy.failover is not None and policy.failover.cluster is not None
    bad = counts and any(key in cluster.clocks for key in (NOT_READY, UNREACHABLE))
    return not bad and over(policy, move, cluster, copy)


def advance(
    rule: WorkloadFailover, group: WorkloadGroup, shared_group: WorkloadGroup | None, now: datetime
) -> WorkloadGroup:
    """Let time pass: copies turn bad or good again, tolerations end, causes pass."""
    policy = policy_of(rule, group.state)
    if not isinstance(policy, Policy):
        return group
    before, state = group, lost_moves.taken_up(rule, policy, group, now)
    group = replace(group, state=state)
    copies = _ticked(rule, policy, group, now)
    moves = dict(state.moves)
    clusters = clusters_of(shared_group)
    for name, copy in copies.items():
        cluster, move = clusters.get(name, UNHEARD), moves.get(name)
        due = next_due(rule, policy, cluster, copy, now)
        if move is not None and not move.surplus and move.evicted_at is None:
            passed = returns if move.placed else over
            if passed(policy, move, cluster, copy) or (not move.placed and _begins_again(group, copy, move, due, now)):
                del moves[name]
                move = None  # and what else speaks for leaving counts from this moment on
        if move is None and name in state.evicting and rule.mode is not Mode.DRY_RUN:
            move = moves[name] = _begun(policy, copy, due, now)
        if move is None and due is not None and due.at <= now:
            bad = due.cause == "Application"
            replaced = copy_backoff.with_this(copy) if bad else copy.replaces
            moves[name] = Relocation(due.cause, due.because, due.detail, copy.replicas, replaced=replaced)
    for name in [name for name, move in moves.items() if move.evicted_at is None and name not in copies]:
        del moves[name]
    placing = any(isinstance(entry.action, Place) for entry in group.outbox)
    after = surplus.counted(policy, replace(state, copies=copies), moves, placing=placing)
    limits = partial(constraint_limits, policy, clusters, after.wanted_on)
    in_doubt = any(isinstance(entry.action, Evict) and entry.action.from_ not in moves for entry in group.outbox)
    moves = surplus.with_surplus(rule, policy, after, moves, limits, in_doubt=in_doubt)
    after = replica_surplus.noted(rule, policy, replace(after, moves=dict(sorted(moves.items()))), now)
    return before if after == before.state else replace(group, state=after)


def _begins_again(group: WorkloadGroup, copy: Copy, move: Relocation, due: EvictionDue | None, now: datetime) -> bool:
    """True if a copy was placed in vain, and its toleration has begun again: it was over while nothing was seen.

    Until then it is a copy as any other one, and may be one too many. Not while one is being placed, and not of a copy
    that was there before: the one that was placed for it, and whose outcome was lost, would count as one too many.
    """
    placing = any(isinstance(entry.action, Place) for entry in group.outbox)
    return not placing and copy.placed_at is not None and due is not None and due.cause == move.cause and due.at > now


def _begun(policy: Policy, copy: Copy, due: EvictionDue | None, now: datetime) -> Relocation:
    """An eviction whose task is there though we remember none: its outcome never came, or our memory was wiped.

    Without a cause it is taken back, else it goes on.
    """
    cause = due.cause if due is not None else "Cluster"
    because = due.because if due is not None else Because.TOLERATION_ELAPSED
    grace = behaviour_of(policy, cause).grace_seconds
    detail = due.detail if due is not None else "its eviction task is there"
    return Relocation(
        cause, because, detail, copy.replicas, placed=True, evicted_at=now, purge_mode=PurgeMode.GRACEFULLY,
        grace_seconds=600 if grace is None else grace,
    )  # fmt: skip


def heard(rule: WorkloadFailover, group: WorkloadGroup, at: datetime) -> WorkloadGroup:
    """An observation of a copy has been folded in: let its clock know at once, so that nothing between is lost."""
    state = group.state
    policy = policy_of(rule, state)
    if not isinstance(policy, Policy):
        return group
    copies = _ticked(rule, policy, group, at)
    return group if copies == state.copies else replace(group, state=replace(state, copies=copies))


def _ticked(rule: WorkloadFailover, policy: Policy, group: WorkloadGroup, now: datetime) -> dict[str, Copy]:
    begun = (name for name, move in group.state.moves.items() if not move.surplus and (move.placed or move.evicted_at))
    leaving = {*begun, *group.state.evicting}
    out = {}
    for name, copy in group.state.copies.items():
        member = member_of(group, name, copy)
        out[name] = copy if member is None else ticked_copy(rule, policy, copy, member, now, leaves=name in leaving)
    return out
