"""Delete: at once, or a mark when finalizers hold the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor.demo.kube.admission_checks import check_preconditions
from reactor.demo.kube.objects import JsonObject, NamespacedName, rfc3339
from reactor.demo.kube.store import Revision
from reactor.demo.kube.writes import WriteResult, live_revision

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

_GIVES_BACK = frozenset(("pods", "services", "serviceaccounts", "persistentvolumeclaims"))
"""Kinds whose deletion answers with the object; all others answer with a Status."""


def delete(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    """Delete an object, or mark it when finalizers hold it.

    There is no garbage collector and no kubelet: owned objects stay, a pod goes at once.
    """
    options = body if isinstance(body, dict) else {}
    live = live_revision(cluster, call)
    check_preconditions(call.resource, live, options.get("preconditions") or {})
    metadata = live.value["metadata"]
    if call.dry_run or options.get("dryRun") == ["All"]:
        return WriteResult(200, live, before=live, after=live)
    if not metadata.get("finalizers"):
        return _gone(call, live, remove(cluster, call, call.key))
    if "deletionTimestamp" in metadata:
        return WriteResult(200, live, before=live, after=live)
    marks: JsonObject = {"deletionTimestamp": rfc3339(cluster.now()), "deletionGracePeriodSeconds": 0}
    marks |= {"generation": metadata["generation"] + 1} if "generation" in metadata else {}
    marked = cluster.store.put(call.resource, {**live.value, "metadata": {**metadata, **marks}})
    return WriteResult(200, marked, before=live, after=marked, effective=True)


def remove(cluster: EmulatedState, call: ApiRequest, key: NamespacedName) -> Revision:
    """Take an object out of the store, with everything that lives only through it."""
    last = cluster.store.remove(call.resource, key)
    if call.resource.kind == "Namespace":
        cluster.empty_namespace(key[1])
    elif call.resource.kind == "CustomResourceDefinition":
        cluster.withdraw(last.value)
    return last


def _gone(call: ApiRequest, live: Revision, last: Revision) -> WriteResult:
    if call.resource.plural in _GIVES_BACK:
        return WriteResult(200, last, before=live, after=last, effective=True)
    details = {"name": call.key[1], "kind": call.resource.plural, "uid": live.value["metadata"]["uid"]}
    details |= {"group": call.resource.group} if call.resource.group else {}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return WriteResult(200, status=status, before=live, after=last, effective=True)
