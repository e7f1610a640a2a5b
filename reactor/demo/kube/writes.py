"""Create and update: from a call and its body to a new revision, or a refusal.

Everything here is synchronous, so the order in which writes take effect is the order of the write log.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reactor.demo.kube.admission_checks import (
    admitted,
    carried_over,
    check_name,
    check_namespace,
    check_place,
    counted,
    read_object,
)
from reactor.demo.kube.apply import Manager, updated
from reactor.demo.kube.crds import accepted
from reactor.demo.kube.defaults import defaulted
from reactor.demo.kube.errors import (
    FieldError,
    StatusError,
    already_exists,
    invalid,
    not_found,
)
from reactor.demo.kube.lists import shapes_of
from reactor.demo.kube.objects import JsonObject, rfc3339
from reactor.demo.kube.store import Revision

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write."""

    code: int
    revision: Revision | None = None
    """The object to answer with; None: answer with `status`."""
    status: JsonObject | None = None
    before: Revision | None = None
    after: Revision | None = None
    effective: bool = False
    warnings: tuple[str, ...] = ()


def live_revision(cluster: EmulatedState, call: ApiRequest) -> Revision:
    """Give the object the call names; 404 when there is none."""
    found = cluster.store.collection(call.resource).objects.get(call.key)
    if found is None:
        raise not_found(call.resource, call.name)
    return found


def create(cluster: EmulatedState, call: ApiRequest, body: Any, *, seed: bool = False) -> WriteResult:
    """Create an object. `seed`: the demo sets its scene, so a status is kept and a namespace need not exist."""
    new = read_object(call.resource, body)
    metadata = new["metadata"]
    check_place(call, metadata)
    if metadata.get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
    metadata.pop("managedFields", None)
    return insert(cluster, call, new, seed=seed)


def insert(cluster: EmulatedState, call: ApiRequest, new: JsonObject, *, seed: bool = False) -> WriteResult:
    """Keep an object that was not there: for create, and for an apply that creates."""
    resource, metadata, now = call.resource, new["metadata"], rfc3339(cluster.now())
    name = metadata.get("name") or ""
    if not name:
        text = "Required value: name or generateName is required"
        raise invalid(resource, "", [FieldError("metadata.name", "FieldValueRequired", text)])
    check_name(resource, name)
    call = replace(call, name=name)
    if seed and resource.namespaced:
        cluster.ensure_namespace(call.namespace)
    check_namespace(call, cluster.store.collection(cluster.catalog.at("", "v1", "namespaces")).objects)
    if call.key in cluster.store.collection(resource).objects:
        raise already_exists(resource, name)
    stamp = {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    stamp |= {"namespace": call.namespace} if resource.namespaced else {}
    metadata = metadata | stamp
    new = {**new, "metadata": metadata | ({"generation": 1} if resource.generation else {})}
    if resource.has_status and not seed and resource.kind != "Node":
        new.pop("status", None)  # a node's status is its kubelet's to send along
    new = defaulted(resource.kind, new)
    warnings: list[str] = []
    new = admitted(call, new, warnings)
    if resource.kind == "CustomResourceDefinition":
        new["status"] = accepted(new, now)
    if "managedFields" not in metadata:
        manager = Manager(call.manager, "Update", resource.group_version)
        new = updated(None, new, manager, shapes_of(resource), now)
    return keep(cluster, call, None, new, tuple(warnings))


def update(cluster: EmulatedState, call: ApiRequest, body: Any) -> WriteResult:
    """Replace an object, or its status."""
    live = live_revision(cluster, call)
    return rewrite(cluster, call, live, read_object(call.resource, body))


def rewrite(cluster: EmulatedState, call: ApiRequest, live: Revision, new: JsonObject) -> WriteResult:
    """Put a changed object in the place of the live one, owned by the call's manager where it differs."""
    resource, warnings = call.resource, list[str]()
    new = admitted(call, carried_over(call, live, new), warnings)
    manager = Manager(call.manager, "Update", resource.group_version, call.subresource)
    new = updated(live.value, new, manager, shapes_of(resource), rfc3339(cluster.now()))
    return keep(cluster, call, live, counted(resource, live, new), tuple(warnings))


def keep(
    cluster: EmulatedState, call: ApiRequest, live: Revision | None, new: JsonObject, warnings: tuple[str, ...] = ()
) -> WriteResult:
    code = 200 if live else 201
    if live and new == live.value:
        return WriteResult(code, live, before=live, after=live, warnings=warnings)  # a no-op keeps its resourceVersion
    if call.dry_run:
        return WriteResult(code, Revision(new, live.version if live else 0), before=live, after=live, warnings=warnings)
    if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
        cluster.store.put(call.resource, new)
        kept = cluster.store.remove(call.resource, call.key)
    else:
        kept = cluster.store.put(call.resource, new)
        if call.resource.kind == "CustomResourceDefinition":
            cluster.catalog.define(kept.value)
    return WriteResult(code, kept, before=live, after=kept, effective=True, warnings=warnings)
