"""Patch: the four kinds, each from a call and its body to a new revision, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor.demo.kube.admission_checks import (
    admitted,
    carried_over,
    check_place,
    counted,
    read_object,
    without_empty_metadata,
)
from reactor.demo.kube.apply import Manager, applied
from reactor.demo.kube.errors import FieldError, bad_request, invalid, not_found, unsupported_media_type
from reactor.demo.kube.lists import shapes_of
from reactor.demo.kube.objects import JsonObject, rfc3339
from reactor.demo.kube.patch import json_patch, merge
from reactor.demo.kube.strategic import strategic_merge
from reactor.demo.kube.writes import WriteResult, insert, keep, live_revision, rewrite

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def patch(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    """Change an object by any of the four kinds of patch."""
    if call.media_type == APPLY:
        return _apply(cluster, call, body)
    if call.flag("force"):
        text = "Forbidden: may not be specified for non-apply patch"
        raise invalid(call.resource, call.name, [FieldError("force", "FieldValueForbidden", text)])
    live = live_revision(cluster, call)
    changed = patched(call, call.resource.to_served(live.value), body)
    return rewrite(cluster, call, live, read_object(call.resource, changed))


def patched(call: ApiRequest, document: JsonObject, body: Any) -> Any:
    """Give the document with the patch applied; 415 for a kind of patch this resource does not take."""
    if call.media_type == JSON_PATCH:
        return json_patch(document, body)
    if not isinstance(body, dict):
        raise bad_request("the body of a merge patch must be an object")
    if call.media_type == MERGE_PATCH:
        return merge(document, body)
    if call.media_type == STRATEGIC and not call.resource.custom:
        return strategic_merge(document, body)
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY]
    raise unsupported_media_type(accepted if call.resource.custom else [*accepted[:2], STRATEGIC, APPLY])


def _apply(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    resource, now = call.resource, rfc3339(cluster.now())
    if not call.query.get("fieldManager"):
        text = "Required value: is required for apply patch"
        raise invalid(resource, call.name, [FieldError("fieldManager", "FieldValueRequired", text)])
    if not isinstance(body, dict) or not body.get("apiVersion") or not body.get("kind"):
        raise bad_request("the body of an apply must name its apiVersion and kind")
    wanted = read_object(resource, body)
    if wanted["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    check_place(call, wanted["metadata"])
    # Empty labels are never stored, but who applies them owns them: the next one who does so meets a conflict.
    given = body.get("metadata") or {}
    wanted["metadata"] |= {field: {} for field in ("annotations", "labels") if given.get(field) == {}}
    live = cluster.store.collection(resource).objects.get(call.key)
    if live is None and call.subresource:
        raise not_found(resource, call.name)
    manager = Manager(call.manager, "Apply", resource.group_version, call.subresource)
    if live is None:
        wanted["metadata"]["name"] = call.name
        if wanted["metadata"].get("uid") or wanted["metadata"].get("resourceVersion"):
            raise not_found(resource, call.name)
        new = applied(None, wanted, manager, shapes_of(resource), force=False, time=now)
        return insert(cluster, call, without_empty_metadata(new))
    identity = {field: wanted["metadata"].pop(field, None) for field in ("uid", "resourceVersion")}
    new = applied(live.value, wanted, manager, shapes_of(resource), force=call.flag("force"), time=now)
    new = without_empty_metadata(new)
    owners = new["metadata"].get("managedFields")
    asked = {field: value for field, value in identity.items() if value}
    new = carried_over(call, live, {**new, "metadata": {**new["metadata"], **asked}})
    warnings: list[str] = []
    new = admitted(call, {**new, "metadata": {**new["metadata"], "managedFields": owners}}, warnings)
    return keep(cluster, call, live, counted(resource, live, new), tuple(warnings))
