"""Carry out a write and record it: the one door through which clients change anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor.demo.kube import deletion, patching, writes
from reactor.demo.kube.errors import StatusError
from reactor.demo.kube.eviction_subresource import evict
from reactor.demo.kube.object_selectors import parse_filter
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.scale import write_scale
from reactor.demo.kube.writelog import LoggedWrite

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState


def perform(cluster: EmulatedState, call: ApiRequest, body: Any, *, seed: bool = False) -> writes.WriteResult:
    """Carry out a create, update, patch or delete, and write it down whatever becomes of it."""
    try:
        done = _carry_out(cluster, call, body, seed=seed)
    except StatusError as refusal:
        _record(cluster, call, body, writes.WriteResult(refusal.code))
        raise
    _record(cluster, call, body, done)
    return done


def _carry_out(cluster: EmulatedState, call: ApiRequest, body: Any, *, seed: bool) -> writes.WriteResult:
    if call.subresource == "eviction":
        return evict(cluster, call, body)
    if call.subresource == "scale":
        return write_scale(cluster, call, body)
    match call.verb:
        case "create":
            return writes.create(cluster, call, body, seed=seed)
        case "update":
            return writes.update(cluster, call, body)
        case "patch":
            return patching.patch(cluster, call, body)
        case "delete":
            return deletion.delete(cluster, call, body)
        case _:
            raise AssertionError(f"{call.verb} is no write to one object")


def delete_collection(cluster: EmulatedState, call: ApiRequest, body: Any) -> writes.WriteResult:
    """Delete all objects a selector selects, each recorded as a write of its own."""
    only = parse_filter(call.resource, call.namespace, "", call.query)
    objects = cluster.store.collection(call.resource).objects
    for namespace, name in sorted(key for key, one in objects.items() if only.matches(one.value)):
        perform(cluster, call.on(namespace, name, verb="delete"), body)
    status: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return writes.WriteResult(200, status=status)


def _record(cluster: EmulatedState, call: ApiRequest, body: Any, done: writes.WriteResult) -> None:
    named = done.after.value["metadata"]["name"] if done.after else call.name
    cluster.log.append(
        LoggedWrite(
            sequence=cluster.log.next_number(),
            at=cluster.monotonic(),
            cluster=cluster.name,
            verb=call.verb,
            group=call.resource.group,
            resource=call.resource.plural,
            subresource=call.subresource,
            namespace=call.namespace,
            name=named,
            manager=call.manager,
            patch_type=call.media_type if call.verb == "patch" else "",
            body=body,
            before=done.before.value["metadata"]["resourceVersion"] if done.before else "",
            after=done.after.value["metadata"]["resourceVersion"] if done.after else "",
            effective=done.effective,
            code=done.code,
        )
    )
