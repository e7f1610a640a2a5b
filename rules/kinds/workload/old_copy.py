"""The old copy: it is purged, stays after all, or waits with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from bus.messages import CancelEviction, Health, Mode, Purge
from bus.messages.placements import placed
from rules.core.desired import Evidence, PlannedAction
from rules.core.reasons import Because, Held
from rules.core.timers import runs
from rules.kinds.workload import cluster_backoff as workload_backoff
from rules.kinds.workload.causes import member_of, over, returns
from rules.kinds.workload.constraints import constraint_limits
from rules.kinds.workload.eviction import behaviour_of, bound, purged_because
from rules.kinds.workload.model import PurgeMode
from rules.kinds.workload.placement_inputs import HoldReason, Inputs
from rules.kinds.workload.state import UNHEARD, Relocation
from rules.kinds.workload.surplus import may_return
from rules.rulefile.targets import encode_segment


def end_of(view: Inputs, name: str, move: Relocation) -> PlannedAction | HoldReason | None:
    """Purge the old copy, keep it after all, or say why it is still there."""
    state, now = view.state, view.now
    stay = {other: serves(view, other) for other in bound(state.copies, state.moves)}
    # Where none of them ever has a signal, none says anything about the new one.
    targets = (
        stay
        if any(stay.values())
        else {other: status for other, status in stay.items() if state.copies[other].placed_at is not None}
    )
    behaviour = behaviour_of(view.policy, move.cause)
    # Who writes Never in the grace period wants to remove it by hand.
    kept = move.grace_seconds is None or behaviour.purge_mode is PurgeMode.NEVER
    grace = None if kept else view.rule.window(move.grace_seconds or 0)
    # What was observed of the old copy before its cluster failed is no reason to keep it.
    failed = view.clusters.get(name, UNHEARD).status in (Health.UNHEALTHY, Health.UNKNOWN)
    silent = failed and not view.heard_since(name, move.evicted_at)
    why = purged_because(
        now - (move.evicted_at or now), grace, targets, placed=move.placed,
        source=None if silent else view.health(name),
        on_expired=behaviour.on_grace_expired or view.rule.on_grace_expired,
    )  # fmt: skip
    told = ", ".join(f"{other}: {status or 'without an observation'}" for other, status in stay.items()) or "no copies"
    if isinstance(why, Because):
        needs = tuple(_staying(view, move, stay, over=why is Because.GRACE_ELAPSED))
        return PlannedAction(
            Purge, view.fields(name), why, told, concurrency_key=f"purge/{name}", follows=True, needs=needs
        )
    cluster = view.clusters.get(name, UNHEARD)
    # What would have to leave again at once, for another cause, does not come back: its replacement stays.
    comes_back = returns if stay else over  # where no other copy stays, it is the only one that can
    passed = not move.surplus and not view.due(name) and comes_back(view.policy, move, cluster, state.copies.get(name))
    if passed and move.cause == "Cluster" and cluster.waits_until is not None:
        return Held.BACKING_OFF, f"{name} stays left {workload_backoff.why(name, cluster)}"
    limits = partial(constraint_limits, view.policy, view.clusters, view.state.wanted_on)
    if passed and move.purge_mode == PurgeMode.GRACEFULLY and may_return(view.rule, view.policy, state, name, limits):
        stays = placed({other: copy.replicas or 0 for other, copy in bound(state.copies, state.moves).items()})
        detail = f"{name}: {cluster.status or 'no longer tainted'}; the copies are now: {stays}"
        failover = view.policy.failover
        on = failover and (failover.application if move.cause == "Application" else failover.cluster)
        why = Because.RECOVERED if on else Because.RULE_CHANGED
        return PlannedAction(CancelEviction, view.fields(name), why, detail, concurrency_key=f"evict/{name}", safe=True)
    if why is None or (view.rule.mode is Mode.DRY_RUN and not any(targets.values())):
        return None  # a rehearsed copy is nowhere, so no source observes it
    return why, f"{name} keeps its copy; {told}"


def serves(view: Inputs, name: str) -> Health | None:
    """Health of a copy that stays: Unknown while its cluster is bad and it has to leave if that lasts, or if it was
    last seen Healthy before its cluster failed. Neither is a proof by which another copy may be removed."""
    status, cluster = view.health(name), view.clusters.get(name, UNHEARD)
    since = max((clock.since for clock in cluster.clocks.values() if runs(clock)), default=None)
    if status is not Health.HEALTHY or since is None:
        return status
    due = view.dues.get(name)
    is_next = due is not None and due.because is Because.CLUSTER_UNHEALTHY
    return Health.UNKNOWN if is_next or not view.heard_since(name, since) else status


def _staying(view: Inputs, move: Relocation, stay: Mapping[str, Health | None], *, over: bool) -> Iterator[Evidence]:
    """The healthy copies are to carry on alone: seen so since they are, or since the grace period is `over`."""
    end = (move.evicted_at or view.now) + view.rule.window((move.grace_seconds or 0) if over else 0)
    for name, status in stay.items():
        member = member_of(view.group, name, view.state.copies[name])
        if status is Health.HEALTHY and member is not None:
            since = max(end, member.since) if over else member.since
            yield Evidence(f"workload/{encode_segment(name)}/{view.group.object}", healthy=True, since=since)
