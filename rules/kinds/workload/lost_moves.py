"""Moves and marks of which the group does not know, as the copies tell them.

The record of a move is lost with the store of the bus. A copy that is marked then goes on leaving, once the copies that
were to stay beside it are listed. A copy that was made for an older one, which is there and not marked, takes its place
when that one has been bad for the toleration from now on, and is one too many when that one is proven good. Only a
group that has changed no copy yet does so.

And the outcome of an eviction may never come: its executor was killed, or the answer of the API server was lost, and
then it was called off. A mark of a later decision than the last one that is known to have changed the copy is one that
was written all the same. Nothing is removed for it: it is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from bus.messages import Action, Evict, Mode, Place, Purge
from rules.core.reasons import Because
from rules.core.timers import Stopwatch
from rules.core.values import replace
from rules.kinds.workload.eviction import behaviour_of
from rules.kinds.workload.model import Policy, PurgeMode, WorkloadFailover
from rules.kinds.workload.state import Cause, Copy, CopyMarks, Relocation, WorkloadGroup, WorkloadState

CARRIED_OUT = (Mode.ENFORCE, Mode.APPROVE)
FOUND = "found again by what the copies say"


class LostMoves(NamedTuple):
    """Moves in which the copies say they are."""

    leaving: Mapping[str, CopyMarks]
    """Those that are marked, by cluster."""
    replaced: Mapping[str, str]
    """Those for which another one was made, and which are not marked: cluster to the cluster of the other one."""
    wanted: Mapping[str, int]
    """Cluster to replicas of all copies that are wanted when nothing moves any more."""


def taken_up(rule: WorkloadFailover, policy: Policy, group: WorkloadGroup, now: datetime) -> WorkloadState:
    """Give the state with the moves of which it does not know, as of the newest inventory."""
    state = group.state
    if rule.carrier != "Kubernetes" or rule.mode not in CARRIED_OUT or not state.marks:
        return state
    if state.acted_at is not None or state.moves or state.wanted_copies is not None or group.outbox:
        return state
    lost = _lost(rule, state)
    if lost is None:
        return state
    moves = {name: _leaving(policy, state, name, marks, now) for name, marks in lost.leaving.items()}
    moves |= {name: _replaced(policy, state, name, other) for name, other in lost.replaced.items()}
    copies = {name: _copy(state, name, moves.get(name), now) for name in state.copies}
    return replace(
        state, moves=dict(sorted(moves.items())), copies=copies, wanted_copies=len(lost.wanted),
        wanted_replicas=sum(lost.wanted.values()), wanted_on=tuple(sorted(lost.wanted)), wanted_sizes=lost.wanted,
    )  # fmt: skip


def unwanted_marks(rule: WorkloadFailover, group: WorkloadGroup) -> Iterator[str]:
    """Give the clusters whose copy is marked although the rule lets it leave no more: nothing is on its way for it."""
    state = group.state
    if rule.carrier != "Kubernetes" or rule.mode not in CARRIED_OUT or state.acted_at is None:
        return
    in_flight = {name for entry in group.outbox for name in _touched(entry.action)}
    for name in state.marks.keys() & state.copies.keys() - in_flight - state.moves.keys():
        marks = state.marks[name]
        if _is_marked(marks) and marks.rule == rule.name and _is_news(marks, state.copies[name]):
            yield name


def _touched(action: Action) -> Iterable[str]:
    """Clusters of which an outcome is to come that tells how the copy is; not of a mark that is being taken off."""
    match action:
        case Place():
            return (*action.clusters, *action.leaving)
        case Evict() | Purge():
            return (action.from_,)
    return ()


def _is_marked(marks: CopyMarks) -> bool:
    """True if it was marked itself. One that is younger than its mark was made from the manifest of a marked one."""
    copied = marks.created_at is not None and marks.decided_at is not None and marks.created_at > marks.decided_at
    return bool(marks.leaves) and not copied


def _is_news(marks: CopyMarks, copy: Copy) -> bool:
    """True for marks of a later decision than the last one that is known to have changed the copy."""
    return marks.decided_at is not None and (copy.decided_at is None or copy.decided_at < marks.decided_at)


def _lost(rule: WorkloadFailover, state: WorkloadState) -> LostMoves | None:
    here = state.copies.keys()
    ours = {name: one for name, one in sorted(state.marks.items()) if name in here and one.rule == rule.name}
    # A mark of an earlier release does not say what was to stay: nothing may be removed for it.
    leaving = {name: one for name, one in ours.items() if _is_marked(one) and one.stays and here >= {*one.stays}}
    stay = here - leaving.keys()
    replaced = {
        old: name for name, one in ours.items() if name in stay for old in one.placed_for
        if old in stay and _is_older(state, old, name)
    }  # fmt: skip
    if not stay or not (leaving or replaced):
        return None
    wanted = {name: state.copies[name].replicas or 0 for name in sorted(stay) if name not in replaced.values()}
    return LostMoves(leaving, replaced, wanted)


def _is_older(state: WorkloadState, old: str, name: str) -> bool:
    """True if the copy for which one was made is still the one of that time: one that came later is a person's."""
    older, newer = state.marks.get(old), state.marks[name]
    if older is None or older.created_at is None or newer.created_at is None:
        return False
    return older.created_at < newer.created_at


def _leaving(policy: Policy, state: WorkloadState, name: str, marks: CopyMarks, now: datetime) -> Relocation:
    cause = _cause(policy)
    behaviour = behaviour_of(policy, cause)
    never = behaviour.purge_mode is PurgeMode.NEVER
    # One that is removed Directly has no mark: then the policy was another one.
    grace = behaviour.grace_seconds if behaviour.purge_mode is PurgeMode.GRACEFULLY else None if never else 600
    return Relocation(
        cause, marks.leaves, FOUND, state.copies[name].replicas, placed=True, evicted_at=now,
        purge_mode=PurgeMode.NEVER if never else PurgeMode.GRACEFULLY, grace_seconds=grace,
        surplus=marks.leaves == Because.RECOVERED,
        found=f"the copy on {name} says that it leaves, and the record of that was lost",
    )  # fmt: skip


def _replaced(policy: Policy, state: WorkloadState, name: str, other: str) -> Relocation:
    found = f"the copy on {other} says that it was made for the one on {name}, and the record of that was lost"
    return Relocation(
        _cause(policy), Because.TOLERATION_ELAPSED, FOUND, state.copies[name].replicas, placed=True, found=found,
    )  # fmt: skip


def _cause(policy: Policy) -> Cause:
    """Cause of a move of which the cause is lost. A cluster that is bad keeps its copy from coming back in any case."""
    return "Application" if policy.failover is not None and policy.failover.application is not None else "Cluster"


def _copy(state: WorkloadState, name: str, move: Relocation | None, now: datetime) -> Copy:
    """A copy that was replaced counts as bad until it is proven good; one that we have made is the newest."""
    copy, marks = state.copies[name], state.marks.get(name)
    if move is not None and not move.surplus and copy.bad is None:
        copy = replace(copy, bad=Stopwatch(now, now))
    if marks is not None and marks.placed_for and marks.created_at is not None and copy.placed_at is None:
        copy = replace(copy, placed_at=marks.created_at)
    return copy
