"""Place, Evict, Purge and CancelEviction on a Karmada control plane: one conditional write to the binding each.

Karmada carries on from there: it makes and removes the copies in the member clusters.
"""

from __future__ import annotations

from collections.abc import Callable

from bus.messages import CancelEviction, Evict, Outcome, Place, Purge
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.karmada.binding import dialect_of, forget, read_binding
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.karmada.tasks import Placement, cancelled, evicted, placed, placement_of, purged, task_for
from reactor.actions.patches import patch
from reactor.actions.settle import Change, settle_object
from reactor.actions.workload.marks import follows, refuse_if_stale, stamps
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.clients.port import Invalid, JsonObject, KubeApi
from reactor.clock import Clock
from reactor.errors import ReactorError

WorkloadAction = Place | Evict | Purge | CancelEviction
_FIELDS = ("clusters", "gracefulEvictionTasks")


async def carry_out(
    action: WorkloadAction, plane: ControlPlane, clock: Clock, context: ExecutionContext | None = None
) -> Outcome:
    """Make the binding as asked, at most one effective write for one decision.

    Never raises for what the world does. Failed: BindingMissing, KarmadaSwitch, Forbidden, Invalid, Conflict,
    ClusterUnreachable (the control plane does not answer), UnknownCluster. Refused: DryRun, Stale.
    """
    written: list[str] = []
    error: ReactorError | None = None
    try:
        enforced(action)
        api = GuardedKube(await plane.api(), context or ExecutionContext())
        if await _settled(api, action):
            written.append(f"the binding of {action.workload.kind}/{action.workload.name}")
    except ReactorError as stopped:
        error = stopped
    return outcome(action, clock, [Report(plane.name, written, error)])


async def _settled(api: KubeApi, action: WorkloadAction) -> bool:
    becomes = await _becoming(api, action)

    def plan(binding: JsonObject) -> list[JsonObject] | None:
        refuse_if_stale(binding, action)
        return difference(binding, becomes(binding), action)

    change = Change(
        plan,
        as_asked=lambda binding: difference(binding, becomes(binding), action) is None,
        written_by_us=lambda binding: follows(binding, action),
    )
    try:
        done = await settle_object(api, action.workload.object, lambda: read_binding(api, action.workload), change)
    except Invalid:
        forget(api)  # it may take other words by now; the next try asks
        raise
    return done is not None


async def _becoming(api: KubeApi, action: WorkloadAction) -> Callable[[JsonObject], Placement]:
    """Give what the action makes of a binding."""
    match action:
        case Place():
            return lambda one: placed(placement_of(one), action.clusters, sized=bool(one["spec"].get("replicas")))
        case Evict():
            task = task_for(action, await dialect_of(api, action.workload))
            return lambda one: evicted(placement_of(one), task)
        case Purge():
            return lambda one: purged(placement_of(one), action.from_)
        case CancelEviction():
            return lambda one: cancelled(placement_of(one), action.from_)


def difference(binding: JsonObject, becomes: Placement, action: WorkloadAction) -> list[JsonObject] | None:
    """Give the one JSON Patch that makes the binding so; None: it is."""
    now, spec = placement_of(binding), binding.get("spec") or {}
    operations = [
        {"op": "replace" if field in spec else "add", "path": f"/spec/{field}", "value": new}
        for field, old, new in zip(_FIELDS, now, becomes, strict=True)
        if old != new
    ]
    return patch(binding, operations, write=stamps(action)) if operations else None
