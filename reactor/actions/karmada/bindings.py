"""Place, Evict, Purge and CancelEviction on a Karmada control plane: at most one conditional write to the binding each.

Karmada carries on from there: its scheduler has the last word on where the copies are, and its controllers make and
remove them in the member clusters. What a Place and the Evict that follows it ask is one write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from bus.messages import CancelEviction, Evict, Outcome, Place, Purge
from bus.messages.placements import placed
from reactor.actions.conditional_write import ConditionalChange, Written, conditional_write_object
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.karmada.answer import answer, words
from reactor.actions.karmada.binding import dialect_of, forget, read_binding
from reactor.actions.karmada.cluster_taints import API as CLUSTERS
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.karmada.foreseen import WouldMove, refuse_if_lost, spread_by_region
from reactor.actions.karmada.moves import cancelled, limits_of, moved, purged, returned
from reactor.actions.karmada.tasks import BindingPlacement, placement_of, task_for
from reactor.actions.outcomes import DETAIL_MAX
from reactor.actions.patches import patch
from reactor.actions.workload.marks import follows, refuse_if_stale, stamps
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.clients.kubernetes_port import Invalid, JsonObject, KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from rules.kinds.workload.facts import PLACED_ELSEWHERE

BindingAction = Place | Evict | Purge | CancelEviction
_FIELDS = ("clusters", "gracefulEvictionTasks")


async def carry_out(
    action: BindingAction, plane: ControlPlane, clock: Clock, context: ExecutionContext | None = None
) -> Outcome:
    """Make the binding as asked, at most one effective write for one decision, and wait for the scheduler's answer.

    Never raises for what the world does. Done may have the reason PlacedElsewhere. Failed: BindingMissing,
    KarmadaSwitch, Forbidden, Invalid, Conflict, ClusterUnreachable (the control plane does not answer), UnknownCluster,
    SchedulerRefused, SchedulerSilent, SchedulerBehind, SchedulerWouldMove, LastHealthyCopy, NoHealthyCopy; InProgress:
    the scheduler has some time left. Refused: DryRun, Stale.
    """
    written: list[str] = []
    error: ReactorError | None = None
    elsewhere = ""
    try:
        enforced(action)
        api = GuardedKube(await plane.ours_to_move(), context or ExecutionContext())
        done = await _settled(api, action)
        if done is not None:
            written.append(f"the binding of {action.workload.kind}/{action.workload.name}")

        async def read() -> JsonObject:
            return (await read_binding(api, action.workload))[1]

        found = await answer(read, done.before if done is not None else {}, clock)
        elsewhere = otherwise(found, action)
    except ReactorError as stopped:
        error = stopped
    made = outcome(action, clock, [Report(plane.name, written, error)])
    if error is None and elsewhere:
        detail = f"{made.detail}; {elsewhere}"[:DETAIL_MAX]
        made = made.model_copy(update={"reason": PLACED_ELSEWHERE, "detail": detail})
    return made


async def _settled(api: KubeApi, action: BindingAction) -> Written | None:
    becomes = await _becoming(api, action)

    def plan(binding: JsonObject) -> list[JsonObject] | None:
        refuse_if_stale(binding, action)
        return difference(binding, becomes(binding), action)

    change = ConditionalChange(
        plan,
        as_asked=lambda binding: difference(binding, becomes(binding), action) is None,
        written_by_us=lambda binding: follows(binding, action),
    )
    try:
        return await conditional_write_object(
            api, action.workload.object, lambda: read_binding(api, action.workload), change
        )
    except Invalid:
        forget(api)  # it may take other words by now; the next try asks
        raise


async def _becoming(api: KubeApi, action: BindingAction) -> Callable[[JsonObject], BindingPlacement]:
    """Give what the action makes of a binding. It raises Declined where the scheduler's answer would do harm."""
    becomes: Callable[[JsonObject], BindingPlacement]
    match action:
        case Place():
            dialect = await dialect_of(api, action.workload)
            tasks = [task_for(action, one, dialect) for one in action.evictions]
            becomes = lambda one: moved(placement_of(one), action.clusters, tasks, limits_of(one))  # noqa: E731 - typed above
        case Evict():
            task = task_for(action, action, await dialect_of(api, action.workload))
            becomes = lambda one: _evicted(one, action, task)  # noqa: E731 - typed above
        case Purge() | CancelEviction():
            members = await api.list(CLUSTERS)
            return lambda one: _ended(one, action, members)
    members = await api.list(CLUSTERS) if spread_by_region((await read_binding(api, action.workload))[1]) else []
    return lambda one: refuse_if_lost(one, becomes(one), members, healthy(one, _ready(members)))


def _evicted(binding: JsonObject, action: Evict, task: JsonObject) -> BindingPlacement:
    now = placement_of(binding)
    if action.from_ not in {one["name"] for one in now.clusters}:
        return now  # its Place has done it, or another writer: where the copies are since is not ours to change
    return moved(now, action.clusters, [task], limits_of(binding))


def _ended(binding: JsonObject, action: Purge | CancelEviction, members: Sequence[JsonObject]) -> BindingPlacement:
    """Let the eviction be over. Where the scheduler would not let the new copy stay, the old one may be back alone."""
    now, well = placement_of(binding), healthy(binding, _ready(members))
    if isinstance(action, Purge):
        return refuse_if_lost(binding, purged(now, action.from_, well), members, well)
    try:
        return refuse_if_lost(binding, cancelled(now, action.from_, limits_of(binding), well), members, well)
    except WouldMove:
        if action.from_ not in well:
            raise
        return refuse_if_lost(binding, returned(now, action.from_), members, well)


def _ready(members: Sequence[JsonObject]) -> frozenset[str]:
    """Give the member clusters that are Ready: what Karmada says of copies on others is what it heard last."""
    return frozenset(one["metadata"]["name"] for one in members if _is_ready(one))


def _is_ready(cluster: JsonObject) -> bool:
    conditions = (cluster.get("status") or {}).get("conditions") or []
    return any((one.get("type"), one.get("status")) == ("Ready", "True") for one in conditions)


def healthy(binding: JsonObject, ready: Collection[str]) -> frozenset[str]:
    """Give the clusters whose copy Karmada finds Healthy now."""
    told = (binding.get("status") or {}).get("aggregatedStatus") or []
    return frozenset(one["clusterName"] for one in told if one.get("health") == "Healthy") & frozenset(ready)


def otherwise(binding: JsonObject, action: BindingAction) -> str:
    """Say what differs from what the action asked for; empty: nothing."""
    has = {one["name"] for one in placement_of(binding).clusters}
    match action:
        case Place() | Evict() if action.clusters:
            as_asked, asked = has == action.clusters.keys(), placed(action.clusters)
        case CancelEviction():
            as_asked, asked = action.from_ in has, f"{action.from_} as well, for which the policy has no room"
        case _:
            as_asked = not isinstance(action, Evict | Purge) or action.from_ not in has
            asked = f"to leave {getattr(action, 'from_', 'it')}"
    return "" if as_asked else f"Karmada's scheduler has placed it on {words(binding)}; asked was {asked}"


def difference(binding: JsonObject, becomes: BindingPlacement, action: BindingAction) -> list[JsonObject] | None:
    """Give the one JSON Patch that makes the binding so; None: it is."""
    now, spec = placement_of(binding), binding.get("spec") or {}
    operations = [
        {"op": "replace" if field in spec else "add", "path": f"/spec/{field}", "value": new}
        for field, old, new in zip(_FIELDS, now, becomes, strict=True)
        if old != new
    ]
    return patch(binding, operations, write=stamps(action)) if operations else None
