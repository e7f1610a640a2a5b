"""Inventory of a workload's copies, and the effects of actions on them.

Inventory that repeats an earlier one changes nothing: in a dry run it would undo the rehearsal, and after an action it
may be older than that action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bus.messages import (
    Action,
    CancelEviction,
    Evict,
    Fact,
    Mode,
    Outcome,
    Place,
    Purge,
    Workload,
    WorkloadCopy,
)
from rules.core.reasons import Because
from rules.core.values import replace, without
from rules.kinds.workload import surplus
from rules.kinds.workload.affinity import means
from rules.kinds.workload.eviction import bound, evicted
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import Copy, CopyMarks, Departure, Relocation, WorkloadGroup, WorkloadState

COPY_GONE = "CopyGone"
"""The carrier's word for a done action on a copy that is not there: it was removed while nothing watched it."""
PLACED_ELSEWHERE = "PlacedElsewhere"
"""The carrier's word for a done action after which the copies are not where it asked."""


def observe(rule: WorkloadFailover, group: WorkloadGroup, fact: Fact, now: datetime) -> WorkloadGroup:
    """Fold in inventory. A late fact never undoes a newer one, nor what an action has changed since."""
    state = group.state
    match fact:
        case Workload():
            state = _workload(rule, state, fact, min(fact.observed_at, now))
        case WorkloadCopy():
            state = _copy(rule, state, fact, min(fact.observed_at, now), _placing(group))
    state = surplus.changed(group.state, state, _placing(group))
    return group if state == group.state else replace(group, state=state)


def _placing(group: WorkloadGroup) -> set[str]:
    """The clusters in which a copy is being made: it may be listed before we hear that it is done."""
    return {name for entry in group.outbox if isinstance(entry.action, Place) for name in entry.action.clusters}


def _workload(rule: WorkloadFailover, state: WorkloadState, fact: Workload, at: datetime) -> WorkloadState:
    if state.listed_at is not None and at < state.listed_at:
        return state
    if fact.exists and not means(rule, fact):
        return replace(state, meant=False, exists=False, listed_at=at, listed={}, copies={}, moves={})
    again = state.listed_at is not None and dict(state.listed) == fact.clusters
    appeared_at = at if state.listed_at is not None else None
    policy = json.dumps(fact.policy, sort_keys=True) if fact.policy is not None else None
    state = replace(
        state, api_version=fact.api_version, uid=fact.uid, replicas=fact.replicas, exists=fact.exists, listed_at=at,
        meant=True, policy=policy, states={**state.states, **fact.states},
    )  # fmt: skip
    if state.acted_at is not None and at <= state.acted_at:
        return state
    state = replace(state, evicting=fact.evicting)
    if again or not fact.exists:
        return state
    keeps = {name: copy for name, copy in state.copies.items() if rule.carrier == "Karmada" and name in state.moves}
    # One that we are evicting holds its copy by its task, also where we remember nothing of it.
    keeps |= {name: state.copies.get(name, Copy(None)) for name in fact.evicting}
    told = {name: _resized(state, name, count, appeared_at) for name, count in fact.clusters.items()}
    state = replace(state, listed=dict(fact.clusters), copies=_sorted({**keeps, **told}))
    for name in state.moves.keys() - state.copies.keys():
        state = _gone(state, name)
    return state


def _copy(
    rule: WorkloadFailover, state: WorkloadState, fact: WorkloadCopy, at: datetime, placing: set[str]
) -> WorkloadState:
    name, known = fact.cluster, state.copies.get(fact.cluster)
    seen_at = state.copy_seen.get(name)
    if seen_at is not None and at < seen_at:
        return state
    if fact.exists and not means(rule, fact):
        return _let_go(state, name, at)
    state = replace(state, meant=True)
    if fact.state:
        state = replace(state, states={**state.states, name: fact.state})
    state = _marked(state, fact)
    again = seen_at is not None and state.listed.get(name) == (fact.replicas or 0 if fact.exists else None)
    acted_at = known.placed_at if known is not None else state.acted_at
    if again or (acted_at is not None and at <= acted_at):
        return replace(state, copy_seen={**state.copy_seen, name: max(at, seen_at or at)})
    state = replace(state, api_version=fact.api_version, copy_seen={**state.copy_seen, name: at})
    listed = {key: count for key, count in state.listed.items() if key != name}
    if not fact.exists:
        state = replace(state, listed=listed, copies=without(state.copies, name))
        state = _gone(state, name) if name in state.moves else _to_be_placed_again(state)
        return replace(state, exists=bool(state.copies))
    appeared_at = at if seen_at is not None or name in placing else None
    copies = _sorted({**state.copies, name: _resized(state, name, fact.replicas, appeared_at)})
    listed = {**listed, name: fact.replicas or 0}
    return replace(state, exists=True, uid=state.uid or fact.uid, listed=listed, copies=copies)


def _marked(state: WorkloadState, fact: WorkloadCopy) -> WorkloadState:
    marks = None
    if fact.exists and fact.record is not None:
        said = fact.record
        marks = CopyMarks(said.created_at, said.rule, said.decided_at, said.placed_for, said.leaves, said.stays)
    if state.marks.get(fact.cluster) == marks:
        return state
    known = {**without(state.marks, fact.cluster), **({fact.cluster: marks} if marks is not None else {})}
    return replace(state, marks=dict(sorted(known.items())))


def _let_go(state: WorkloadState, name: str, at: datetime) -> WorkloadState:
    """A copy that has lost the labels by which it was selected is none of ours: it is neither counted nor moved."""
    copies = without(state.copies, name)
    return replace(
        state, meant=bool(copies), exists=bool(copies), copy_seen={**state.copy_seen, name: at}, copies=copies,
        listed=without(state.listed, name), moves=without(state.moves, name), marks=without(state.marks, name),
    )  # fmt: skip


def _resized(state: WorkloadState, name: str, replicas: int | None, appeared_at: datetime | None) -> Copy:
    """A copy as it is listed. What appears where there was none is new: health seen before is that of another one."""
    known = state.copies.get(name)
    if known is None:
        return Copy(replicas, placed_at=appeared_at, replaces=_replaced(state))
    return replace(known, replicas=replicas)


def _replaced(state: WorkloadState) -> int:
    """Number of bad copies in a row that a newly listed copy replaces."""
    return max((move.replaced for move in state.moves.values()), default=0)


def _gone(state: WorkloadState, name: str) -> WorkloadState:
    """The old copy is gone, by an action or by a person's hand: the workload has left the cluster."""
    move = state.moves[name]
    if move.purge_mode == "Directly":
        return state  # it went first: the move ends when its replacement is placed
    left = state.left
    if move.evicted_at is not None and not move.surplus:
        left = dict(sorted({**left, name: Departure(move.evicted_at, move.cause)}.items()))
    return replace(state, moves=without(state.moves, name), left=left)


def done(rule: WorkloadFailover, group: WorkloadGroup, action: Action, at: datetime) -> WorkloadGroup:
    """The world is as the action asked."""
    state = group.state
    match action:
        case Place():
            state = _placed(state, action, at)
        case Evict():
            state = _evicted(state, action, at)
        case Purge():
            state = replace(state, copies=without(state.copies, action.from_))
            state = _gone(state, action.from_) if action.from_ in state.moves else state
        case CancelEviction():
            state = _returned(state, action.from_, at)
        case _:
            return group
    touched = action.clusters if isinstance(action, Place) else (action.from_,)
    copies = {name: replace(copy, decided_at=action.decided_at) if name in touched else copy
              for name, copy in state.copies.items()}  # fmt: skip
    state = replace(state, copies=copies)
    if isinstance(action, Purge | CancelEviction):
        state = replace(state, evicting=tuple(name for name in state.evicting if name != action.from_))
    if rule.mode is not Mode.DRY_RUN:
        state = replace(state, listed={name: copy.replicas or 0 for name, copy in state.copies.items()})
    return replace(group, state=replace(state, acted_at=at))


def said(_rule: WorkloadFailover, group: WorkloadGroup, action: Action, fact: Outcome) -> WorkloadGroup:
    """Keep in mind where the scheduler of the control plane has the last word, and that a copy is not there."""
    state = group.state
    if fact.reason == COPY_GONE and isinstance(action, Evict | CancelEviction):
        name = action.from_
        state = replace(state, copies=without(state.copies, name), listed=without(state.listed, name))
        state = _gone(state, name) if name in state.moves else state
        group = replace(group, state=replace(state, exists=bool(state.copies)))
        state = group.state
    overruled = fact.detail if fact.reason == PLACED_ELSEWHERE else ""
    return group if state.overruled == overruled else replace(group, state=replace(state, overruled=overruled))


def _to_be_placed_again(state: WorkloadState) -> WorkloadState:
    """A replacement that is gone while the copies that leave are still there is none, where no other copy stays."""
    if bound(state.copies, state.moves):
        return state
    again = {name: move if move.surplus else replace(move, placed=False) for name, move in state.moves.items()}
    return replace(state, moves=again)


def _placed(state: WorkloadState, action: Place, at: datetime) -> WorkloadState:
    copies = dict(state.copies)
    for name, count in action.clusters.items():
        known = copies.get(name)
        if known is None:
            copies[name] = Copy(count, placed_at=at, replaces=_replaced(state))
        elif (known.replicas or 0) != count:
            copies[name] = replace(known, replicas=count, placed_at=at)
    moves = {name: replace(move, placed=name in action.leaving or move.placed) for name, move in state.moves.items()}
    # What was purged first is over now that its replacement is there.
    moves = {name: move for name, move in moves.items() if move.purge_mode != "Directly" or not move.placed}
    # What was told of an earlier copy there says nothing about the new one.
    states = {name: told for name, told in state.states.items() if name in state.copies or name not in copies}
    return replace(state, copies=_sorted(copies), moves=moves, states=states)


def _evicted(state: WorkloadState, action: Evict, at: datetime) -> WorkloadState:
    name = action.from_
    if name not in state.copies:
        return state
    # It was carried out although the rule no longer wants it: a move without its cause is taken back at once.
    known = state.moves.get(name) or Relocation(
        "Application", action.because, action.detail, action.replicas, surplus=action.because == Because.RECOVERED
    )
    directly = action.purge_mode == "Directly"
    stays = bool(bound(without(state.copies, name), state.moves))  # its replacement may have been removed meanwhile
    move = replace(
        known, evicted_at=at, purge_mode=action.purge_mode, grace_seconds=action.grace_period_seconds,
        placed=not directly and stays, preserved=action.preserved, planned=action.clusters,
    )  # fmt: skip
    state = replace(state, moves=evicted(state.moves, name, move))
    if not directly:
        return state
    left = dict(sorted({**state.left, name: Departure(at, known.cause)}.items()))
    return replace(state, copies=without(state.copies, name), left=left)


def _returned(state: WorkloadState, name: str, at: datetime) -> WorkloadState:
    """The copy stays after all. One that was bad itself counts as its own replacement: it may flap."""
    move, copy = state.moves.get(name), state.copies.get(name)
    if move is not None and copy is not None and move.cause == "Application" and not move.surplus:
        back = replace(copy, replaces=move.replaced, returned_at=at)
        state = replace(state, copies=_sorted({**state.copies, name: back}))
    return replace(state, moves=without(state.moves, name))


def reset(_rule: WorkloadFailover, group: WorkloadGroup) -> WorkloadGroup:
    """Forget what was only rehearsed: the copies are where inventory has them."""
    state = group.state
    if state.clusters:
        return group
    rehearsed: dict[str, Any] = {"placed_at": None, "returned_at": None, "replaces": 0}
    copies = {name: replace(state.copies.get(name, Copy(count)), replicas=count, **rehearsed)
              for name, count in state.listed.items()}  # fmt: skip
    state = replace(surplus.forgotten(state), copies=copies, moves={}, left={}, acted_at=None)
    return replace(group, state=state)


def _sorted(copies: Mapping[str, Copy]) -> dict[str, Copy]:
    return dict(sorted(copies.items()))
