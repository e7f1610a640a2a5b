"""The scale subresource: `autoscaling/v1 Scale` as another view of `spec.replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor.demo.kube.errors import FieldError, bad_request, invalid
from reactor.demo.kube.objects import JsonObject, lookup
from reactor.demo.kube.patching import patched
from reactor.demo.kube.store import Revision
from reactor.demo.kube.writes import WriteResult, live_revision, rewrite

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(revision: Revision) -> JsonObject:
    """Give the Scale of a workload."""
    value = revision.value
    labels = lookup(value, ("spec", "selector", "matchLabels")) or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: value["metadata"][name] for name in _COPIED if name in value["metadata"]},
        "spec": {"replicas": lookup(value, ("spec", "replicas")) or 0},
        "status": {
            "replicas": lookup(value, ("status", "replicas")) or 0,
            "selector": ",".join(f"{name}={label}" for name, label in sorted(labels.items())),
        },
    }


def write_scale(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    """Set the number of replicas by PUT or PATCH of the Scale; the answer is the new Scale."""
    live = live_revision(cluster, call)
    scale = body if call.verb == "update" else patched(call, scale_of(live), body)
    if not isinstance(scale, dict):
        raise bad_request("the body of the request is not a Scale")
    replicas = lookup(scale, ("spec", "replicas")) or 0
    if type(replicas) is not int or replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(call.resource, call.name, [FieldError("spec.replicas", "FieldValueInvalid", text)])
    metadata = {**live.value["metadata"], "resourceVersion": lookup(scale, ("metadata", "resourceVersion")) or ""}
    new = {**live.value, "metadata": metadata, "spec": {**live.value["spec"], "replicas": replicas}}
    done = rewrite(cluster, call, live, new)
    after = done.revision
    if after is None:
        raise AssertionError("a rewrite always answers with the object")
    return WriteResult(done.code, None, scale_of(after), done.before, done.after, done.effective, done.warnings)
