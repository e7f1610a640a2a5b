"""What a WorkloadFailover rule wants for one workload: place, evict, purge, or keep it where it is.

Never evict with nowhere to go, never purge the last healthy copy, never act while nobody knows; each hold has a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bus.messages import CancelEviction, Evict, Eviction, Health, Mode, Place, Purge, WorkloadRef
from bus.messages.placements import placed
from rules.core.desired import DesiredState, Evidence, PlannedAction
from rules.core.reasons import Because, Held
from rules.core.timers import runs
from rules.core.values import replace
from rules.kinds.workload import cluster_backoff as workload_backoff
from rules.kinds.workload import copy_backoff
from rules.kinds.workload.candidates import SchedulingRequest, opens_at
from rules.kinds.workload.causes import EvictionDue, behaviour_of, member_of, next_due, over, policy_of, returns
from rules.kinds.workload.constraints import limits_that_stood
from rules.kinds.workload.eviction import borne_until, bound, next_purge, purged_because
from rules.kinds.workload.inventory import clusters_of
from rules.kinds.workload.preservation import injected, preserved
from rules.kinds.workload.scheduling import land
from rules.kinds.workload.spread import Insufficient
from rules.kinds.workload.state import UNHEARD, UNLISTED, ClusterState, Relocation, WorkloadGroup, WorkloadState
from rules.kinds.workload.surplus import may_return, needed_again
from rules.rulefile.targets import encode_segment
from rules.rulefile.workload import Policy, PurgeMode, WorkloadFailover

LOOK_FOR_ROOM = timedelta(seconds=30)
"""How often one that has nowhere to go looks again: rooms change without a word to it."""
Hold = tuple[Held, str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that one decision uses."""

    rule: WorkloadFailover
    policy: Policy
    group: WorkloadGroup
    state: WorkloadState
    clusters: Mapping[str, ClusterState]
    now: datetime
    dues: Mapping[str, EvictionDue]
    """For each copy that something runs against."""

    def due(self, name: str) -> bool:
        due = self.dues.get(name)
        return due is not None and due.at <= self.now

    def fields(self, name: str | None = None) -> dict[str, Any]:
        """What all actions on the workload have; `name`: of one that is about a cluster."""
        *namespace, kind, own = self.group.object.split("/")
        ref = WorkloadRef(namespace="".join(namespace), kind=kind, name=own, api_version=self.state.api_version)
        return {"workload": ref, "carrier": self.rule.carrier} | ({"from_": name} if name is not None else {})

    def health(self, name: str) -> Health | None:
        """How a copy is; None: nothing was heard since it was placed."""
        copy = self.state.copies.get(name)
        member = member_of(self.group, name, copy) if copy is not None else None
        return member.status if member is not None else None

    def heard_since(self, name: str, moment: datetime | None) -> bool:
        """Whether anything was said of a copy since then."""
        copy = self.state.copies.get(name)
        member = member_of(self.group, name, copy) if copy is not None else None
        if member is None or moment is None:
            return False
        return any(said.observed_at >= moment for said in member.signals.values())


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
        return _vanished(group, state)
    clusters = clusters_of(shared_group)
    found = {name: next_due(policy, clusters.get(name, UNHEARD), copy, now) for name, copy in state.copies.items()}
    dues = {name: due for name, due in found.items() if due is not None}
    return _desired(Inputs(rule, policy, group, state, clusters, now, dues))


def _vanished(group: WorkloadGroup, state: WorkloadState) -> DesiredState:
    """The workload is gone; whoever took it away hears what was begun for it elsewhere."""
    begun = {name for entry in group.outbox if isinstance(entry.action, Place) for name in entry.action.clusters}
    if not state.moves and not begun:
        return DesiredState()
    left = f"; its placement on {', '.join(sorted(begun))} was under way, and what it needs may stand there"
    return DesiredState(held=(Held.WORKLOAD_NOT_FOUND, f"{group.object} is gone{left if begun else ''}"))


def _desired(view: Inputs) -> DesiredState:
    acts: list[PlannedAction] = []
    holds: list[Hold] = []
    looks = [due.at for due in view.dues.values() if due.at > view.now]
    pending = [
        name for name, move in view.state.moves.items() if not move.placed and (move.evicted_at or view.due(name))
    ]
    again = _needed_again(view, pending)
    if pending and not again:
        for item in _relocation(view, pending):
            if isinstance(item, PlannedAction):
                acts.append(item)
            elif isinstance(item, datetime):
                looks.append(item)
            else:
                holds.append(item)
    for name, move in view.state.moves.items():
        if move.placed and move.evicted_at is None and (move.surplus or view.due(name)):
            acts.append(_evict(view, name, move, follows=True))
        elif name in again:
            acts.append(_wanted_again(view, name))
        elif move.placed and move.evicted_at is not None:
            ending = _ending(view, name, move)
            acts += [ending] if isinstance(ending, PlannedAction) else []
            holds += [ending] if isinstance(ending, tuple) else []
    holds += _unsure(view)
    if view.state.overruled and (view.state.moves or view.state.left):
        holds.append((Held.SCHEDULER_OVERRULED, view.state.overruled))
    looks += [at for at in _turns(view) if at > view.now]
    if (purge_at := next_purge(view.state.moves.values(), view.now)) is not None:
        looks.append(purge_at)
    return DesiredState(acts=tuple(acts), held=holds[0] if holds else None, requeue_at=min(looks, default=None))


# --- to another place ----------------------------------------------------------------------------------------------


def _relocation(view: Inputs, pending: list[str]) -> Iterator[PlannedAction | Hold | datetime]:
    """Place and evict, in the order of the purge mode; a hold, and when to look again, where there is no place."""
    moves, policy = view.state.moves, view.policy
    modes = {name: moves[name].purge_mode or behaviour_of(policy, moves[name].cause).purge_mode for name in pending}
    first = [name for name in pending if modes[name] == PurgeMode.DIRECTLY and moves[name].evicted_at is None]
    later = [name for name in pending if name not in first]
    try:
        if first:
            plan = land(_question(view, pending))  # there has to be a place for all, before the first copy goes
            taking = tuple(_taking(view, plan.keys() - view.state.copies.keys(), pending))
        for name in first:
            labels = preserved(behaviour_of(policy, moves[name].cause), view.state.states.get(name, {}))
            if isinstance(labels, str):
                yield Held.STATE_UNKNOWN, f"{name}: {labels}"
            else:
                act = _evict(view, name, moves[name], follows=False, labels=labels, plan=plan)
                yield replace(act, needs=(*act.needs, *taking))
        if later and (begun := _written(view, later)) is not None:
            yield begun
        elif later:
            question = _question(view, later)
            plan = land(question)
            if plan == question.stay and not any(moves[name].evicted_at for name in later):
                # There are enough copies already: nothing has to be placed.
                yield from (_evict(view, name, moves[name], follows=False, plan=plan) for name in later)
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
    return SchedulingRequest(
        policy, view.state, view.clusters, leaving, policy.placement.on_insufficient or view.rule.on_insufficient,
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
        "evictions": tuple(_evictions(view, leaving)),
    }  # fmt: skip
    detail = "; ".join(f"{name}: {view.state.moves[name].detail}" for name in leaving)
    follows = any(view.state.moves[name].evicted_at for name in leaving)  # Directly: this is its second half
    needs = (*_left(view, leaving), *_taking(view, plan.keys() - view.state.copies.keys(), leaving))
    return PlannedAction(
        Place, fields, move.because, detail, concurrency_key="place", follows=follows, needs=() if follows else needs
    )


def _evictions(view: Inputs, leaving: Iterable[str]) -> Iterator[Eviction]:
    """What Karmada is told together with the placement. Evict follows, and has the outcome of the Place."""
    for name in leaving:
        move = view.state.moves[name]
        if view.rule.carrier == "Karmada" and move.evicted_at is None:
            yield Eviction.model_validate({"from_": name, **_manner(view, move)})


def _manner(view: Inputs, move: Relocation) -> dict[str, Any]:
    behaviour = behaviour_of(view.policy, move.cause)
    return {
        "purge_mode": behaviour.purge_mode.value, "grace_period_seconds": behaviour.grace_seconds,
        "on_grace_expired": (behaviour.on_grace_expired or view.rule.on_grace_expired).value,
    }  # fmt: skip


def _left(view: Inputs, names: Iterable[str]) -> Iterator[Evidence]:
    """What is left has to be bad now; one that is left for its taints may be well."""
    for name in names:
        due = view.dues.get(name)
        if due is not None and due.because in (Because.CLUSTER_UNHEALTHY, Because.WORKLOAD_UNHEALTHY):
            target = encode_segment(name)
            whole = f"cluster/{target}" if due.cause == "Cluster" else f"workload/{target}/{view.group.object}"
            yield Evidence(whole, healthy=False, since=due.at, unknown=True)


def _taking(view: Inputs, names: Iterable[str], leaving: Iterable[str]) -> Iterator[Evidence]:
    """What gets a copy has to be healthy now, where anything is known of its health."""
    since = max((due.at for name in leaving if (due := view.dues.get(name)) is not None), default=view.now)
    for name in sorted(names):
        if view.clusters.get(name, UNHEARD).status is None:
            continue  # none of the signals that the rule goes by has ever spoken of it
        yield Evidence(f"cluster/{encode_segment(name)}", healthy=True, since=since)


def _evict(
    view: Inputs, name: str, move: Relocation, *, follows: bool, labels: Mapping[str, str] | None = None,
    plan: Mapping[str, int] | None = None,
) -> PlannedAction:  # fmt: skip
    """`plan`: where the workload is to be, where this is the first that is heard of it."""
    stay = bound(view.state.copies, view.state.moves)
    plan = {other: copy.replicas or 0 for other, copy in stay.items()} if plan is None else plan
    for entry in view.group.outbox:
        # On its way: it is not asked for again because the status goes on, or because rooms have changed.
        if isinstance(entry.action, Evict) and entry.action.from_ == name:
            labels = entry.action.preserved or labels
            plan = entry.action.clusters if entry.action.clusters.keys() == plan.keys() else plan
    fields = view.fields(name) | _manner(view, move) | {
        "replicas": move.replicas, "targets": tuple(stay), "preserved": dict(labels or {}),
        "clusters": dict(plan) if view.rule.carrier == "Karmada" else {},
    }  # fmt: skip
    detail = f"{move.because}: {move.detail}"
    needs = tuple(_left(view, [name])) if not move.surplus else ()
    because = Because.RECOVERED if move.surplus else Because.TOLERATION_ELAPSED
    return PlannedAction(Evict, fields, because, detail, concurrency_key=f"evict/{name}", follows=follows, needs=needs)


def _needed_again(view: Inputs, pending: list[str]) -> frozenset[str]:
    if not pending:
        return frozenset()
    sick = [name for name in view.state.moves if view.due(name)]
    limits = partial(limits_that_stood, view.policy, view.clusters, view.state.wanted_on)
    return needed_again(view.state, pending, sick, limits)


def _wanted_again(view: Inputs, name: str) -> PlannedAction:
    """A copy that was too many stays after all: it takes the place of one that has to leave now."""
    why = next(move for move in view.state.moves.values() if not move.placed and not move.surplus)
    detail = f"{name}: it stays for what has to leave: {why.detail}"
    return PlannedAction(
        CancelEviction, view.fields(name), why.because, detail, concurrency_key=f"evict/{name}", safe=True
    )


# --- the old copy --------------------------------------------------------------------------------------------------


def _ending(view: Inputs, name: str, move: Relocation) -> PlannedAction | Hold | None:
    """Purge the old copy, keep it after all, or say why it is still there."""
    state, now = view.state, view.now
    stay = {other: _serves(view, other) for other in bound(state.copies, state.moves)}
    # Where nobody ever speaks of any of them, none says anything about the new one.
    targets = (
        stay
        if any(stay.values())
        else {other: status for other, status in stay.items() if state.copies[other].placed_at is not None}
    )
    behaviour = behaviour_of(view.policy, move.cause)
    # Who writes Never in the grace period wants to remove it by hand.
    kept = behaviour.purge_mode is PurgeMode.NEVER
    # What was heard of the old copy before its cluster failed is no reason to keep it.
    failed = view.clusters.get(name, UNHEARD).status in (Health.UNHEALTHY, Health.UNKNOWN)
    silent = failed and not view.heard_since(name, move.evicted_at)
    why = purged_because(
        now - (move.evicted_at or now), None if kept else move.grace_seconds, targets, placed=move.placed,
        source=None if silent else view.health(name),
        on_expired=behaviour.on_grace_expired or view.rule.on_grace_expired,
    )  # fmt: skip
    told = ", ".join(f"{other}: {status or 'not heard of'}" for other, status in stay.items()) or "no copies"
    if isinstance(why, Because):
        needs = tuple(_staying(view, move, stay, over=why is Because.GRACE_ELAPSED))
        return PlannedAction(
            Purge, view.fields(name), why, told, concurrency_key=f"purge/{name}", follows=True, needs=needs
        )
    cluster = view.clusters.get(name, UNHEARD)
    # What would have to leave again at once, for another cause, does not come back: its replacement stands.
    comes_back = returns if stay else over  # where no other copy stays, it is the only one that can
    passed = not move.surplus and not view.due(name) and comes_back(view.policy, move, cluster, state.copies.get(name))
    if passed and move.cause == "Cluster" and cluster.waits_until is not None:
        return Held.BACKING_OFF, f"{name} stays left {workload_backoff.why(name, cluster)}"
    limits = partial(limits_that_stood, view.policy, view.clusters, view.state.wanted_on)
    if passed and move.purge_mode == PurgeMode.GRACEFULLY and may_return(view.rule, view.policy, state, name, limits):
        stays = placed({other: copy.replicas or 0 for other, copy in bound(state.copies, state.moves).items()})
        detail = f"{name}: {cluster.status or 'no longer tainted'}; the copies are now: {stays}"
        failover = view.policy.failover
        on = failover and (failover.application if move.cause == "Application" else failover.cluster)
        why = Because.RECOVERED if on else Because.RULE_CHANGED
        return PlannedAction(CancelEviction, view.fields(name), why, detail, concurrency_key=f"evict/{name}", safe=True)
    if why is None or (view.rule.mode is Mode.DRY_RUN and not any(targets.values())):
        return None  # a rehearsed copy is nowhere, so nobody hears of it
    return why, f"{name} keeps its copy; {told}"


def _serves(view: Inputs, name: str) -> Health | None:
    """How a copy that stays is: that it was Healthy before its cluster failed is no reason to let another one go."""
    status, cluster = view.health(name), view.clusters.get(name, UNHEARD)
    since = max((clock.since for clock in cluster.clocks.values() if runs(clock)), default=None)
    if status is Health.HEALTHY and since is not None and not view.heard_since(name, since):
        return Health.UNKNOWN
    return status


def _staying(view: Inputs, move: Relocation, stay: Mapping[str, Health | None], *, over: bool) -> Iterator[Evidence]:
    """The healthy copies are to carry on alone: seen so since they are, or since the grace period is `over`."""
    end = (move.evicted_at or view.now) + timedelta(seconds=(move.grace_seconds or 0) if over else 0)
    for name, status in stay.items():
        member = member_of(view.group, name, view.state.copies[name])
        if status is Health.HEALTHY and member is not None:
            since = max(end, member.since) if over else member.since
            yield Evidence(f"workload/{encode_segment(name)}/{view.group.object}", healthy=True, since=since)


# --- what waits ----------------------------------------------------------------------------------------------------


def _unsure(view: Inputs) -> Iterator[Hold]:
    """Copies that would have to be looked after, if only somebody knew how they are."""
    failover = view.policy.failover
    for name, copy in view.state.copies.items():
        cluster = view.clusters.get(name, UNHEARD)
        if failover is None or name in view.state.moves:
            continue
        if failover.cluster is not None and cluster.status is Health.UNKNOWN and not cluster.clocks:
            yield Held.TARGET_UNKNOWN, f"cluster/{name}: nobody has known yet how it is"
        if failover.application is None or copy.bad is None:
            continue
        if copy.bad.waiting_since is not None and copy.bad.healthy_since is None:
            yield Held.TARGET_UNKNOWN, f"{name}: the copy is Unknown, and was bad before"
        until = borne_until(failover.application, copy)
        if not failover.application.decision_conditions.toleration_seconds and until is not None and until > view.now:
            yield Held.BACKING_OFF, copy_backoff.why(name, copy, until)
        if until is not None and until <= view.now and not view.due(name):
            yield Held.PRECONDITIONS_NOT_MET, f"{name}: bad since {copy.bad.since.isoformat()}"


def _turns(view: Inputs) -> Iterator[datetime]:
    """When bad copies change without a word: a toleration ends, though it may not count yet; a recovery is complete."""
    application = view.policy.failover.application if view.policy.failover is not None else None
    for copy in view.state.copies.values():
        if application is None or copy.bad is None:
            continue
        if (until := borne_until(application, copy)) is not None:
            yield until
        if copy.bad.healthy_since is not None:
            yield copy.bad.healthy_since + timedelta(seconds=view.rule.recovery_seconds)
