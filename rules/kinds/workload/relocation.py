"""To another place: where a workload goes that has to leave, and in which order it is placed and evicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from bus.messages import Health, Place
from rules.core.desired import PlannedAction
from rules.core.reasons import Held
from rules.core.values import replace
from rules.kinds.workload.candidates import SchedulingRequest, opens_at
from rules.kinds.workload.eviction import behaviour_of, bound
from rules.kinds.workload.model import PurgeMode
from rules.kinds.workload.placement_inputs import HoldReason, Inputs
from rules.kinds.workload.planned_evictions import evict_action, evictions, left_evidence, taking_evidence
from rules.kinds.workload.preservation import injected, preserved
from rules.kinds.workload.scheduling import land
from rules.kinds.workload.shrinking import as_it_may_be
from rules.kinds.workload.spread import Insufficient

LOOK_FOR_ROOM = timedelta(seconds=30)
"""Interval at which a workload without a landing place looks again: free room changes without a fact."""


def relocation(view: Inputs, pending: list[str]) -> Iterator[PlannedAction | HoldReason | datetime]:
    """Place and evict, in the order of the purge mode; a hold, and when to look again, where there is no place."""
    moves, policy = view.state.moves, view.policy
    modes = {name: moves[name].purge_mode or behaviour_of(policy, moves[name].cause).purge_mode for name in pending}
    first = [name for name in pending if modes[name] == PurgeMode.DIRECTLY and moves[name].evicted_at is None]
    later = [name for name in pending if name not in first]
    try:
        if first:
            plan = land(_question(view, pending))  # there has to be a place for all, before the first copy goes
            taking = tuple(taking_evidence(view, plan.keys() - view.state.copies.keys(), pending))
        for name in first:
            labels = preserved(behaviour_of(policy, moves[name].cause), view.state.states.get(name, {}))
            if isinstance(labels, str):
                yield Held.STATE_UNKNOWN, f"{name}: {labels}"
            else:
                act = evict_action(view, name, moves[name], follows=False, labels=labels, plan=plan)
                yield replace(act, needs=(*act.needs, *taking))
        if later and (begun := _written(view, later)) is not None:
            yield begun
        elif later:
            question = _question(view, later)
            plan = land(question)
            if plan == question.stay and not any(moves[name].evicted_at for name in later):
                # There are enough copies already: nothing has to be placed.
                yield from (evict_action(view, name, moves[name], follows=False, plan=plan) for name in later)
            else:
                yield _place(view, later, plan)
    except Insufficient as error:
        yield Held.NO_LANDING_PLACE, f"{', '.join(pending)}: {error}"
        yield min(view.now + LOOK_FOR_ROOM, opens_at(_question(view, pending)) or view.now + LOOK_FOR_ROOM)


def _written(view: Inputs, leaving: list[str]) -> PlannedAction | None:
    """Karmada: the Place that is written already, though the scheduler's answer is not known. None: there is none.

    Where the copies are by now says nothing of where they have to be: they are on their way.
    """
    plans = [view.state.moves[name].planned for name in leaving]
    if plans[0] and all(plan == plans[0] for plan in plans):
        return _place(view, leaving, plans[0])
    for entry in view.group.outbox:
        flying = entry.action
        if not isinstance(flying, Place) or flying.leaving != tuple(leaving) or not flying.evictions:
            continue
        if all(one.from_ in view.state.evicting for one in flying.evictions):
            move = view.state.moves[leaving[0]]
            fields = {name: getattr(flying, name) for name in _place(view, leaving, flying.clusters).fields}
            return PlannedAction(Place, fields, move.because, flying.detail, concurrency_key="place", follows=True)
    return None


def _question(view: Inputs, leaving: list[str]) -> SchedulingRequest:
    policy = view.policy
    flying = [entry.action.clusters for entry in view.group.outbox if isinstance(entry.action, Place)]
    not_begun = (name for name, move in view.state.moves.items() if not move.placed and move.evicted_at is None)
    state = as_it_may_be(view.group)
    return SchedulingRequest(
        policy, state, view.clusters, leaving, policy.placement.on_insufficient or view.rule.on_insufficient,
        view.now, chosen={name for clusters in flying for name in clusters},
        waiting={name for name in not_begun if not view.due(name)},
    )  # fmt: skip


def _place(view: Inputs, leaving: list[str], plan: Mapping[str, int]) -> PlannedAction:
    for entry in view.group.outbox:
        # What is on its way and as good is not asked for again with other numbers, because rooms have changed.
        flying = entry.action
        if isinstance(flying, Place) and flying.leaving == tuple(leaving) and flying.clusters.keys() == plan.keys():
            plan = flying.clusters
    move = view.state.moves[leaving[0]]
    stay = bound(view.state.copies, view.state.moves)
    others = sorted(stay, key=lambda name: (view.health(name) is not Health.HEALTHY, name))
    fields = view.fields() | {
        "clusters": dict(plan), "leaving": tuple(leaving), "propagate_deps": view.policy.copies_deps,
        "sources": (*others, *(name for name in view.state.moves if name not in stay)),
        "labels": injected((view.state.moves[name] for name in leaving), plan.keys(), view.state.copies.keys()),
        "evictions": tuple(evictions(view, leaving)),
    }  # fmt: skip
    detail = "; ".join(f"{name}: {view.state.moves[name].detail}" for name in leaving)
    follows = any(view.state.moves[name].evicted_at for name in leaving)  # Directly: this is its second half
    needs = (*left_evidence(view, leaving), *taking_evidence(view, plan.keys() - view.state.copies.keys(), leaving))
    return PlannedAction(
        Place, fields, move.because, detail, concurrency_key="place", follows=follows, needs=() if follows else needs
    )
