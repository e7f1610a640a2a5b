"""SelfSubjectAccessReview: `kubectl auth can-i`, and every program that asks before it acts.

There is no RBAC here; what is forbidden is what a `Forbid` fault says, so asking and acting give the same answer.
"""

from __future__ import annotations

from typing import Any

from reactor.demo.kube.call import ApiRequest
from reactor.demo.kube.cluster import EmulatedCluster
from reactor.demo.kube.errors import StatusError, bad_request
from reactor.demo.kube.objects import JsonObject

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def review(cluster: EmulatedCluster, body: Any) -> JsonObject:
    """Answer whether the asked-for call would be allowed."""
    asked = (body.get("spec") or {}).get("resourceAttributes") if isinstance(body, dict) else None
    if not isinstance(asked, dict):
        raise bad_request("a review needs spec.resourceAttributes")
    allowed = not _forbidden(cluster, asked)
    status = {"allowed": allowed} | ({} if allowed else {"denied": True, "reason": "a Forbid fault is in force"})
    return {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", **body, "status": status}


def _forbidden(cluster: EmulatedCluster, asked: JsonObject) -> bool:
    plural, group = asked.get("resource", ""), asked.get("group", "")
    try:
        resource = cluster.catalog.named(f"{plural}.{group}" if group else plural)
    except StatusError:
        return False  # RBAC does not ask whether a resource exists
    place = {"namespace": asked.get("namespace", ""), "name": asked.get("name", "")}
    call = ApiRequest(asked.get("verb", ""), resource, subresource=asked.get("subresource", ""), **place)
    return cluster.faults.forbids(call)
