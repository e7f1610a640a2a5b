"""LabelledNetworkPolicy: the zone's pods get a label, and in each namespace a policy denies all to what carries it.

A NetworkPolicy cannot select a node or a zone: one with a nodeSelector was accepted, the field dropped, and a whole
namespace cut in every zone. Hence the label on pods, and hence its limits, which every outcome names: policies only
add, so another policy that selects the pod still allows what it allows; pods of the host network are not reached; what
happens to open connections is the network plugin's own. It is a curtain and no proof of isolation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from reactor.actions.conditional_write import ConditionalChange, conditional_write_object
from reactor.actions.patches import escape
from reactor.actions.zone import zone_nodes
from reactor.actions.zone.evictions import path_of
from reactor.actions.zone.isolation_context import IsolationContext, StepResult
from reactor.actions.zone.zone_marks import ISOLATED
from reactor.clients.kubernetes_port import Conflict, JsonObject, KubeApi, ObjectNotFound

_ALL = "/apis/networking.k8s.io/v1/networkpolicies"
_OVER = frozenset({"Succeeded", "Failed"})


async def cut(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Put the deny policies up, then the label on the zone's pods."""
    pods = await _zone_pods(api, isolation)
    spaces = sorted({pod["metadata"]["namespace"] for pod in pods})
    standing = {policy["metadata"]["namespace"] for policy in await _policies(api, isolation)}
    missing = [space for space in spaces if space not in standing]
    await zone_nodes.each(missing, lambda space: _put_up(api, isolation, space))
    # The policies first: a label without one cuts nothing, and would be taken for done.
    open_ = [pod for pod in pods if _label(pod) != isolation.mark]
    await zone_nodes.each(open_, lambda pod: _relabel(api, pod, isolation.mark))
    return StepResult(bool(missing or open_), await _limits(api, isolation, pods))


async def restore(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Take the labels off, then the policies: first the pods are free, then nothing is left."""
    labelled = await api.list("/api/v1/pods", label_selector=f"{ISOLATED}={isolation.mark}")
    await zone_nodes.each(labelled, lambda pod: _relabel(api, pod, None))
    policies = await _policies(api, isolation)
    await zone_nodes.each(policies, lambda policy: _take_down(api, policy))
    return StepResult(
        bool(labelled or policies), f"{len(labelled)} pods have no label, {len(policies)} policies are taken down"
    )


async def _zone_pods(api: KubeApi, isolation: IsolationContext) -> Sequence[JsonObject]:
    """Give the zone's running pods that a policy can reach, outside of the namespaces that stay open."""
    zone = await zone_nodes.in_zone(api, isolation)
    excluded = frozenset(isolation.settings.network.exclude_namespaces)

    async def on(node: JsonObject) -> Sequence[JsonObject]:
        return await api.list("/api/v1/pods", field_selector=f"spec.nodeName={zone_nodes.name_of(node)}")

    found = [pod for pods in await zone_nodes.each(zone, on) for pod in pods]
    return [
        pod
        for pod in found
        if pod["metadata"]["namespace"] not in excluded
        and not (pod.get("spec") or {}).get("hostNetwork")
        and (pod.get("status") or {}).get("phase") not in _OVER
    ]


async def _policies(api: KubeApi, isolation: IsolationContext) -> Sequence[JsonObject]:
    return await api.list(_ALL, label_selector=f"{ISOLATED}={isolation.mark}")


async def _put_up(api: KubeApi, isolation: IsolationContext, namespace: str) -> None:
    labels = {ISOLATED: isolation.mark}
    name = f"reactor-isolated-{isolation.mark.lower().replace('_', '-')}"
    spec = {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress", "Egress"]}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
    try:
        await api.create(f"/apis/networking.k8s.io/v1/namespaces/{quote(namespace, safe='')}/networkpolicies", body)
    except Conflict:
        return  # another process was quicker


async def _take_down(api: KubeApi, policy: JsonObject) -> None:
    metadata = policy["metadata"]
    space, name = quote(metadata["namespace"], safe=""), quote(metadata["name"], safe="")
    try:
        await api.delete(f"/apis/networking.k8s.io/v1/namespaces/{space}/networkpolicies/{name}", uid=metadata["uid"])
    except ObjectNotFound:
        return


async def _relabel(api: KubeApi, pod: JsonObject, mark: str | None) -> None:
    """Give one pod the label, or take it off; a pod that is gone, or another by its name, is left alone."""
    uid = pod["metadata"]["uid"]

    async def read() -> tuple[str, JsonObject]:
        return path_of(pod), await api.get(path_of(pod))

    def plan(obj: JsonObject) -> list[JsonObject] | None:
        return None if obj["metadata"]["uid"] != uid else _labelling(obj, mark)

    change = ConditionalChange(plan=plan, as_asked=lambda obj: plan(obj) is None, written_by_us=lambda _: True)
    try:
        await conditional_write_object(
            api, f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}", read, change
        )
    except ObjectNotFound:
        return


def _labelling(pod: JsonObject, mark: str | None) -> list[JsonObject] | None:
    if _label(pod) == mark:
        return None
    at = f"/metadata/labels/{escape(ISOLATED)}"
    if mark is None:
        return zone_nodes.drop(at, _label(pod))
    if not pod["metadata"].get("labels"):
        whole = {"op": "add", "path": "/metadata/labels", "value": {ISOLATED: mark}}
        return [{"op": "test", "path": "/metadata/labels", "value": pod["metadata"].get("labels")}, whole]
    return [{"op": "test", "path": at, "value": _label(pod)}, {"op": "add", "path": at, "value": mark}]


def _label(obj: JsonObject) -> str | None:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels.get(ISOLATED)


async def _limits(api: KubeApi, isolation: IsolationContext, pods: Sequence[JsonObject]) -> str:
    """Give what is in effect, and what it does not reach."""
    spaces = {pod["metadata"]["namespace"] for pod in pods}
    others = [
        f"{policy['metadata']['namespace']}/{policy['metadata']['name']}"
        for policy in await api.list(_ALL)
        if policy["metadata"]["namespace"] in spaces and _label(policy) is None and _allows(policy)
    ]
    words = f"{len(pods)} pods of {isolation.zone} are denied by policy; pods of the host network are not"
    return f"{words}; these policies may still allow: {', '.join(sorted(others)[:5])}" if others else words


def _allows(policy: JsonObject) -> bool:
    spec = policy.get("spec") or {}
    return bool(spec.get("ingress") or spec.get("egress"))
