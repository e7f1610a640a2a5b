"""The pods of a copy, and how they leave: through the Eviction API, so that disruption budgets are respected.

While its object stands, a controller makes a new pod for each that leaves. Those are left alone: they go with the
object, and a purge that chased them would never end. So only pods from before the decision are evicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from reactor.actions.outcomes import Unfit
from reactor.clients.changes import metadata_of
from reactor.clients.port import ApiUnavailable, BudgetSpent, Conflict, JsonObject, KubeApi, NotFound
from reactor.clock import Clock

AT_ONCE = 8
WAIT_SECONDS = 1.0
"""Between two tries of a pod whose budget is spent; a pod that replaces another is seldom ready sooner."""
BUDGET_SECONDS = 8.0
"""How long one try of a purge waits for budgets. The next one goes on where this ended."""
_V1, _BETA = "policy/v1", "policy/v1beta1"


async def pods_of(api: KubeApi, obj: JsonObject) -> list[JsonObject]:
    """Give the pods that the object controls, itself or by a ReplicaSet; none for kinds without pods.

    A selector alone is not believed: two workloads may share labels, and only one of them leaves.
    """
    spec, metadata = obj.get("spec") or {}, metadata_of(obj)
    if obj.get("kind") == "Pod":
        return [obj]
    if not isinstance(spec.get("selector"), dict) or "template" not in spec:
        return []
    selector, namespace = _selector(spec["selector"]), metadata["namespace"]
    owners = {metadata["uid"]}
    if obj.get("kind") == "Deployment":
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
        between = await api.list(path, label_selector=selector)
        owners = {metadata_of(one)["uid"] for one in between if _controller(one) in owners}
    pods = await api.list(f"/api/v1/namespaces/{namespace}/pods", label_selector=selector)
    return [pod for pod in pods if _controller(pod) in owners]


def _selector(found: JsonObject) -> str:
    """Write a `spec.selector` as the query of a list."""
    parts = [f"{key}={value}" for key, value in sorted((found.get("matchLabels") or {}).items())]
    for one in found.get("matchExpressions") or []:
        key, operator, values = one["key"], one["operator"], ",".join(one.get("values") or ())
        words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(words.get(operator, f"!{key}"))
    return ",".join(parts)


def _controller(obj: JsonObject) -> str:
    owners = metadata_of(obj).get("ownerReferences") or []
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")


async def evict_all(api: KubeApi, pods: Sequence[JsonObject], *, before: datetime, clock: Clock) -> int:
    """Evict those that were made before that moment, and give how many went.

    Raises Unfit (DisruptionBudget) where budgets still allow none after BUDGET_SECONDS, BudgetsOverlap, and as KubeApi
    does.
    """
    leaving = [pod for pod in pods if _made(pod) <= before and "deletionTimestamp" not in metadata_of(pod)]
    if not leaving:
        return 0
    version, deadline = await _version(api), clock.monotonic() + BUDGET_SECONDS
    slots = asyncio.Semaphore(AT_ONCE)

    async def evicted(pod: JsonObject) -> BudgetSpent | None:
        while True:
            try:
                async with slots:
                    await _evict(api, pod, version)
            except BudgetSpent as error:
                wait = max(WAIT_SECONDS, error.after or 0)
                if clock.monotonic() + wait > deadline:
                    return error
                await clock.sleep(wait)
            else:
                return None

    # All are tried, whatever becomes of the first: the more have left, the less is left to do.
    answers = await asyncio.gather(*map(evicted, leaving), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, BudgetSpent):
            raise answer
    if spent := [answer for answer in answers if isinstance(answer, BudgetSpent)]:
        words = f"{len(spent)} of {len(leaving)} pods may not leave yet: {spent[0]}"
        raise Unfit("DisruptionBudget", words)
    return len(leaving)


async def _evict(api: KubeApi, pod: JsonObject, version: str) -> None:
    """Evict exactly this pod. One that is gone, or is another by now, has left."""
    metadata = metadata_of(pod)
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    body = {
        "apiVersion": version, "kind": "Eviction",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "deleteOptions": {"preconditions": {"uid": metadata["uid"]}},
    }  # fmt: skip
    try:
        await api.create(path, body)
    except (NotFound, Conflict):
        return


async def _version(api: KubeApi) -> str:
    """Give the version of evictions that the cluster takes: v1 since Kubernetes 1.22. `kubectl drain` asks the same."""
    for resource in (await api.get("/api/v1")).get("resources") or []:
        if resource.get("name") == "pods/eviction":
            return _V1 if resource.get("version", "v1") == "v1" else _BETA
    raise ApiUnavailable(f"{api.cluster}: knows no eviction of pods")


def _made(pod: JsonObject) -> datetime:
    return datetime.fromisoformat(metadata_of(pod)["creationTimestamp"])
