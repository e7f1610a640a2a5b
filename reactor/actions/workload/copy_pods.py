"""The pods of a copy, and how they leave: through the Eviction API, so that disruption budgets are respected.

While its object exists, a controller makes a new pod for each that leaves. Those are left alone: they go with the
object, and a purge that chased them would never end. So only pods from before the decision are evicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from reactor.actions.outcomes import Declined
from reactor.actions.zone.evictions import EvictionResult, evict
from reactor.clients.changes import metadata_of
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.runtime.clock import Clock

AT_ONCE = 8
WAIT_SECONDS = 1.0
"""Seconds between two tries of a pod whose budget is spent; a pod that replaces another is seldom ready sooner."""
BUDGET_SECONDS = 8.0
"""Seconds that one try of a purge waits for budgets. The next one goes on where this ended."""


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

    Raises Declined (DisruptionBudget) where budgets still allow none after BUDGET_SECONDS, Declined (EvictionRefused)
    where waiting does not help, and as KubeApi does.
    """
    leaving = [pod for pod in pods if _made(pod) <= before and "deletionTimestamp" not in metadata_of(pod)]
    deadline, slots = clock.monotonic() + BUDGET_SECONDS, asyncio.Semaphore(AT_ONCE)

    async def evicted(pod: JsonObject) -> EvictionResult:
        while True:
            async with slots:
                answer = await evict(api, pod)
            if answer.status != "Blocked" or clock.monotonic() + WAIT_SECONDS > deadline:
                return answer
            await clock.sleep(WAIT_SECONDS)

    # All are tried, whatever becomes of the first: the more have left, the less is left to do.
    answers = await asyncio.gather(*map(evicted, leaving), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    for status, reason in (("Refused", "EvictionRefused"), ("Blocked", "DisruptionBudget")):
        if stay := [one for one in answers if isinstance(one, EvictionResult) and one.status == status]:
            raise Declined(reason, f"{len(stay)} of {len(leaving)} pods do not leave: {stay[0].pod}: {stay[0].why}")
    return len(leaving)


def _made(pod: JsonObject) -> datetime:
    return datetime.fromisoformat(metadata_of(pod)["creationTimestamp"])
