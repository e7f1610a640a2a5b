"""Desired state of one workload for a WorkloadFailover rule: place, evict, purge, or keep it where it is.

Never evict with nowhere to go, never purge the last healthy copy, never act on unknown health; each hold has a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from bus.messages import Health, Mode, Place
from rules.core.desired import DesiredState, Evidence, PlannedAction
from rules.core.reasons import Held
from rules.kinds.workload import unreachable
from rules.kinds.workload.causes import all_dues, first_due, policy_of
from rules.kinds.workload.eviction import next_purge
from rules.kinds.workload.inventory import clusters_of
from rules.kinds.workload.lost_moves import unwanted_marks
from rules.kinds.workload.model import Policy, PurgeMode, WorkloadFailover
from rules.kinds.workload.old_copy import end_of
from rules.kinds.workload.placement_inputs import HoldReason, Inputs
from rules.kinds.workload.planned_evictions import evict_action, stays_after_all, unmarked, wanted_again
from rules.kinds.workload.relocation import relocation
from rules.kinds.workload.shrinking import shrinking
from rules.kinds.workload.state import UNHEARD, UNLISTED, WorkloadGroup, WorkloadState
from rules.kinds.workload.waiting import turns, unsure
from rules.rulefile.targets import encode_segment

SAID_FOR = timedelta(hours=1)
"""Time for which the group of a workload that is gone shows its hold: its placement, which people may have to clean up,
ends at once."""
ASKED_FOR = timedelta(minutes=10)
"""Time for which the source of a copy is asked that no move waits for: of a source that was removed, ten thousand
workloads would ask without end."""


def desire(
    rule: WorkloadFailover, group: WorkloadGroup, shared_group: WorkloadGroup | None, now: datetime
) -> DesiredState:
    """Give what is to be done now, and why the rest is not."""
    state = group.state
    if state == UNLISTED:
        return DesiredState()  # never listed: a rule does not act on ignorance
    policy = policy_of(rule, state)
    if policy is None:
        return DesiredState()
    if not isinstance(policy, Policy):
        return DesiredState(held=(Held.POLICY_UNUSABLE, policy))
    going_back = any(move.purge_mode == PurgeMode.DIRECTLY for move in state.moves.values())
    if not state.exists or not (state.copies or going_back):
        return _vanished(group, state, now)
    clusters = clusters_of(shared_group)
    found = {
        name: all_dues(rule, policy, clusters.get(name, UNHEARD), copy, now) for name, copy in state.copies.items()
    }
    dues = {name: due for name, some in found.items() if (due := first_due(some, now)) is not None}
    coming = [due.at for some in found.values() for due in some if due.at > now]
    return _desired(Inputs(rule, policy, group, state, clusters, now, dues), coming)


def _vanished(group: WorkloadGroup, state: WorkloadState, now: datetime) -> DesiredState:
    """Say that the workload is gone, and on which clusters a placement of it had begun, also after that has ended."""
    placing = [entry.action for entry in group.outbox if isinstance(entry.action, Place) and entry.action.leaving]
    begun = {name for action in placing for name in action.clusters}
    said = group.held if group.held is not None and group.held.reason == Held.WORKLOAD_NOT_FOUND else None
    if said is not None and not begun and now < (over := said.since + SAID_FOR):
        return DesiredState(held=(Held.WORKLOAD_NOT_FOUND, said.detail), requeue_at=over)
    if not state.moves and not begun:
        return DesiredState()
    left = f"; its placement on {', '.join(sorted(begun))} was under way, and what it needs may be there"
    return DesiredState(held=(Held.WORKLOAD_NOT_FOUND, f"{group.object} is gone{left if begun else ''}"))


def _desired(view: Inputs, coming: Iterable[datetime]) -> DesiredState:
    """`coming`: the ends of all that runs against a copy, also while something else waits for a look."""
    acts: list[PlannedAction] = []
    holds: list[HoldReason] = []
    looks = [*coming]
    pending = [
        name for name, move in view.state.moves.items() if not move.placed and (move.evicted_at or view.due(name))
    ]
    again = wanted_again(view, pending)
    for item in relocation(view, pending) if pending and not again else shrinking(view):
        if isinstance(item, PlannedAction):
            acts.append(item)
        elif isinstance(item, datetime):
            looks.append(item)
        else:
            holds.append(item)
    for name, move in view.state.moves.items():
        if move.placed and move.evicted_at is None and (move.surplus or view.due(name)):
            acts.append(evict_action(view, name, move, follows=True))
        elif name in again:
            acts.append(stays_after_all(view, name))
        elif move.placed and move.evicted_at is not None:
            ending = end_of(view, name, move)
            acts += [ending] if isinstance(ending, PlannedAction) else []
            holds += [ending] if isinstance(ending, tuple) else []
    acts += [unmarked(view, name) for name in sorted(unwanted_marks(view.rule, view.group)) if _is_good(view, name)]
    holds += unsure(view)
    holds += [(Held.MOVE_FOUND, move.found) for move in view.state.moves.values() if move.found]
    if view.state.overruled and (view.state.moves or view.state.left):
        holds.append((Held.SCHEDULER_OVERRULED, view.state.overruled))
    looks += [at for at in turns(view) if at > view.now]
    if (purge_at := next_purge(view.rule.window, view.state.moves.values(), view.now)) is not None:
        looks.append(purge_at)
    held = holds[0] if holds else None
    return DesiredState(
        acts=tuple(acts), held=held, requeue_at=min(looks, default=None), unseen=tuple(_unseen(view))
    )  # fmt: skip


def _unseen(view: Inputs) -> Iterator[Evidence]:
    """Copies of which nothing was said since they were placed, though something was before: where that has not changed,
    the source says it again only with its next refresh; one that is silent for long is asked only while a move waits.
    And those whose purge waits for a look."""
    if view.rule.mode is Mode.DRY_RUN:
        return  # a rehearsed copy is nowhere
    for name, copy in view.state.copies.items():
        target = f"workload/{encode_segment(name)}/{view.group.object}"
        if copy.placed_at is None or target not in view.group.members or view.health(name) is not None:
            continue
        if view.state.moves or view.now < copy.placed_at + ASKED_FOR:
            yield Evidence(target, healthy=True, since=copy.placed_at)
    yield from unreachable.awaited(view.group, view.now)


def _is_good(view: Inputs, name: str) -> bool:
    """True if a copy is healthy, and has been for long enough where it was bad."""
    return view.health(name) is Health.HEALTHY and view.state.copies[name].bad is None
