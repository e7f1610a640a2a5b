"""SetTaints on a Karmada control plane: `spec.taints` of its Cluster objects.

Key and effect are a taint's identity. One that stands there keeps its time, whoever put it there: the tolerations count
from it. Taken off are only those that the rule had put on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from bus.messages import Outcome, SetTaints, Taint
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.patches import patch
from reactor.actions.settle import Change, settle_object
from reactor.actions.workload.marks import follows, refuse_if_stale, stamps
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.clients.port import JsonObject
from reactor.clock import Clock
from reactor.errors import ReactorError

API = "/apis/cluster.karmada.io/v1alpha1/clusters"


async def carry_out(action: SetTaints, plane: ControlPlane, clock: Clock) -> Outcome:
    """Let the rule's taints on the cluster be exactly these. Outcomes as `bindings.carry_out`; never raises."""
    written: list[str] = []
    error: ReactorError | None = None

    def plan(cluster: JsonObject) -> list[JsonObject] | None:
        refuse_if_stale(cluster, action)
        return difference(cluster, action)

    change = Change(
        plan, as_asked=lambda one: difference(one, action) is None, written_by_us=lambda one: follows(one, action)
    )
    try:
        enforced(action)
        api = await plane.api()
        path = f"{API}/{quote(action.cluster, safe='')}"

        async def read() -> tuple[str, JsonObject]:
            return path, await api.get(path)

        if await settle_object(api, f"cluster/{action.cluster}", read, change):
            written.append(f"taints of cluster/{action.cluster}")
    except ReactorError as stopped:
        error = stopped
    return outcome(action, clock, [Report(plane.name, written, error)])


def difference(cluster: JsonObject, action: SetTaints) -> list[JsonObject] | None:
    """Give the JSON Patch that makes the taints so; None: they are."""
    spec = cluster.get("spec") or {}
    have: list[JsonObject] = [*(spec.get("taints") or [])]
    gone = {(one.key, one.effect) for one in action.before} - {(one.key, one.effect) for one in action.taints}
    becomes = added(removed(have, gone), action.taints, at=action.decided_at)
    if becomes == have:
        return None
    operation = {"op": "replace" if "taints" in spec else "add", "path": "/spec/taints", "value": becomes}
    test = [{"op": "test", "path": "/spec/taints", "value": spec["taints"]}] if "taints" in spec else []
    return patch(cluster, [*test, operation], write=stamps(action))


def added(have: Sequence[JsonObject], want: Iterable[Taint], *, at: datetime) -> list[JsonObject]:
    """Give what stands there and, after it, what is wanted and does not stand yet, since `at` or its own time."""
    there = {_identity(taint) for taint in have}
    return [*have, *(_taint(one, at) for one in want if (one.key, one.effect) not in there)]


def removed(have: Iterable[JsonObject], identities: Iterable[tuple[str, str]]) -> list[JsonObject]:
    """Give what stands there without these keys and effects."""
    gone = frozenset(identities)
    return [taint for taint in have if _identity(taint) not in gone]


def _identity(taint: JsonObject) -> tuple[str, str]:
    return str(taint.get("key")), str(taint.get("effect"))


def _taint(taint: Taint, at: datetime) -> JsonObject:
    since = (taint.time_added or at).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect, "timeAdded": since}
