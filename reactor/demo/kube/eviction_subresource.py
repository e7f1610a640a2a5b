"""The Eviction subresource: delete a pod only if its disruption budget allows it.

The rules and words of `pkg/registry/core/pod/rest/eviction.go`. As upstream the budget's *status* decides; a controller
keeps it (see `Cluster.settle_budgets`), and a budget whose status is behind its spec allows nothing yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor.demo.kube.admission_checks import check_preconditions
from reactor.demo.kube.deletion import delete
from reactor.demo.kube.errors import StatusError, bad_request
from reactor.demo.kube.object_selectors import selects
from reactor.demo.kube.objects import JsonObject, rfc3339
from reactor.demo.kube.store import Revision
from reactor.demo.kube.writes import WriteResult, live_revision

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

_UNGUARDED = frozenset(("Pending", "Succeeded", "Failed"))
"""Phases in which a pod does not serve, so that no budget protects it."""
_RETRY_SECONDS = 10


def evict(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    """Evict the pod (201), or say why not: 404, 409 (another pod of that name), 429 (budget), 500 (two budgets)."""
    if not isinstance(body, dict) or body.get("kind", "Eviction") != "Eviction":
        raise bad_request("the body of an eviction must be an Eviction")
    pod = live_revision(cluster, call)
    options = body.get("deleteOptions") or {}
    check_preconditions(call.resource, pod, options.get("preconditions") or {})
    dry = call.dry_run or options.get("dryRun") == ["All"]
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    if not _unguarded(pod.value):
        budgets = _budgets(cluster, pod.value)
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise StatusError(500, "", message)  # upstream gives no reason here
        if budgets and not _counts_for_nothing(pod.value, budgets[0].value):
            _spend(cluster, budgets[0], pod.value, dry=dry)
    if dry:
        return WriteResult(201, status=status, before=pod, after=pod)
    done = delete(cluster, call, None)  # as upstream: one that finalizers hold is only marked
    return WriteResult(201, status=status, before=pod, after=done.after, effective=done.effective)


def _unguarded(pod: JsonObject) -> bool:
    return (pod.get("status") or {}).get("phase") in _UNGUARDED or "deletionTimestamp" in pod["metadata"]


def _counts_for_nothing(pod: JsonObject, budget: JsonObject) -> bool:
    """True if a pod that is not Ready may go without spending: AlwaysAllow, or enough others are healthy.

    Source: `unhealthyPodEvictionPolicy`, stable since Kubernetes 1.31; IfHealthyBudget is the default.
    """
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    needs, has = int(status.get("desiredHealthy", 0)), int(status.get("currentHealthy", 0))
    return 0 < needs <= has


def _budgets(cluster: EmulatedState, pod: JsonObject) -> list[Revision]:
    labels = pod["metadata"].get("labels") or {}
    found = cluster.store.collection(cluster.catalog.named("poddisruptionbudgets")).objects.values()
    return [
        budget
        for budget in found
        if budget.value["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects((budget.value.get("spec") or {}).get("selector"), labels)
    ]


def _spend(cluster: EmulatedState, budget: Revision, pod: JsonObject, *, dry: bool) -> None:
    """Take one disruption from the budget, or refuse with 429."""
    value, status = budget.value, budget.value.get("status") or {}
    name = value["metadata"]["name"]
    if status.get("observedGeneration", 0) < value["metadata"].get("generation", 0):
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise _too_many(message, f"The disruption budget {name} is still being processed by the server.")
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _too_many(message, f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
    if not dry:
        disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: rfc3339(cluster.now())}
        spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        cluster.store.put(cluster.catalog.named("poddisruptionbudgets"), {**value, "status": spent})


def _too_many(message: str, why: str) -> StatusError:
    causes = [{"reason": "DisruptionBudget", "message": why}]
    still = "still being processed" in why
    # Upstream asks for patience only while the budget's status is behind.
    return StatusError(
        429, "TooManyRequests", message, details={"causes": causes}, retry_after=_RETRY_SECONDS if still else None
    )
