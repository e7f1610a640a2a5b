"""The checks every object passes on its way into the store."""

from __future__ import annotations

import re
from typing import Any

from reactor.demo.kube.call import ApiRequest
from reactor.demo.kube.errors import FieldError, StatusError, bad_request, conflict, invalid, modified
from reactor.demo.kube.objects import JsonObject, clone
from reactor.demo.kube.resources import Resource
from reactor.demo.kube.store import Revision
from reactor.demo.kube.structural_schema import problems, shaped

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_MAX = 253
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
_VERSION_REQUIRED = frozenset(("leases", "poddisruptionbudgets", "customresourcedefinitions"))
"""Built-in kinds that refuse a PUT without resourceVersion; custom resources all do."""
_KEPT = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "generateName",
         "deletionGracePeriodSeconds", "managedFields")  # fmt: skip


def read_object(resource: Resource, body: Any) -> JsonObject:
    """Give the stored form of what a client sent; 400 when it is not an object of this kind."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise bad_request("the body of the request is not a Kubernetes object")
    for field, expected, text in (
        ("apiVersion", resource.group_version, "API version"),
        ("kind", resource.kind, "kind"),
    ):
        given = body.get(field) or expected
        if given != expected:
            message = f"the {text} in the data ({given}) does not match the expected {text} ({expected})"
            raise bad_request(message)
    stored = resource.to_stored(clone(body))
    return without_empty_metadata(stored)


def without_empty_metadata(value: JsonObject) -> JsonObject:
    """Empty labels, annotations and finalizers are the same as none: upstream's types leave them out."""
    metadata = value.get("metadata") or {}
    return {**value, "metadata": {name: inner for name, inner in metadata.items() if inner not in ({}, [], None)}}


def check_name(resource: Resource, name: str) -> None:
    if len(name) > _NAME_MAX or not _NAME.fullmatch(name):
        problem = FieldError("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_NAME_RULE}')
        raise invalid(resource, name, [problem])


def check_place(call: ApiRequest, metadata: JsonObject) -> None:
    """The object must say the same name and namespace as the path, or nothing."""
    name, namespace = metadata.get("name") or call.name, metadata.get("namespace") or call.namespace
    if call.name and name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if call.resource.namespaced and namespace != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_preconditions(resource: Resource, live: Revision, preconditions: JsonObject) -> None:
    """Refuse with 409 to delete an object that is not the one the client means. Upstream names its kind here."""
    metadata = live.value["metadata"]
    for field, name, fate in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        asked, has = preconditions.get(field), metadata[field]
        if asked and asked != has:
            why = f"the {name} in the precondition ({asked}) does not match the {name} in record ({has}). "
            named = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
            details = {"name": metadata["name"], "kind": resource.kind}
            details |= {"group": resource.group} if resource.group else {}
            message = f'Operation cannot be fulfilled on {named} "{metadata["name"]}": {why}The object might have been'
            raise StatusError(409, "Conflict", f"{message} {fate}", details=details)


def carried_over(call: ApiRequest, live: Revision, new: JsonObject) -> JsonObject:
    """Give the new object with what a client may not change taken from the live one; 409 when it wrote on old news."""
    resource, old, metadata = call.resource, live.value["metadata"], new.get("metadata") or {}
    check_place(call, metadata)
    uid = metadata.get("uid")
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise conflict(resource, old["name"], why)
    version = metadata.get("resourceVersion")
    if version and version != old["resourceVersion"]:
        raise modified(resource, old["name"])
    if call.verb == "update" and not version and (resource.custom or resource.plural in _VERSION_REQUIRED):
        text = "Invalid value: 0x0: must be specified for an update"
        raise invalid(resource, old["name"], [FieldError("metadata.resourceVersion", "FieldValueInvalid", text)])
    if call.subresource == "status":
        status = {"status": new["status"]} if new.get("status") is not None else {}
        return {**{name: inner for name, inner in live.value.items() if name != "status"}, **status}
    kept = {name: old[name] for name in _KEPT if name in old} | {"resourceVersion": old["resourceVersion"]}
    free = {name: inner for name, inner in metadata.items() if name not in _KEPT}
    new = {**new, "metadata": free | kept}
    if resource.has_status:
        new.pop("status", None)
        if "status" in live.value:
            new["status"] = live.value["status"]
    return new


def admitted(call: ApiRequest, value: JsonObject, warnings: list[str]) -> JsonObject:
    """Give the object as its schema wants it: pruned, defaulted, checked. Unknown fields become warnings, or a 400."""
    schema = call.resource.schema
    if schema is None:
        return value
    dropped: list[str] = []
    value = shaped(schema, value, dropped)
    unknown = [f'unknown field "{path}"' for path in dropped]
    if unknown and call.query.get("fieldValidation") == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(unknown)}")
    if call.query.get("fieldValidation", "Warn") == "Warn":
        warnings += unknown
    wrong = list(problems(schema, value))
    if wrong:
        raise invalid(call.resource, value["metadata"].get("name", ""), wrong)
    return value


def counted(resource: Resource, live: Revision, new: JsonObject) -> JsonObject:
    """Give the object with its generation raised when its desired state changed."""
    if not resource.generation:
        return new
    if resource.custom:
        beside = ("metadata", "status") if resource.has_status else ("metadata",)
        desired = [{name: part for name, part in one.items() if name not in beside} for one in (live.value, new)]
    else:
        own = "endpoints" if resource.plural == "endpointslices" else "spec"
        desired = [{own: one.get(own), "ports": one.get("ports")} for one in (live.value, new)]
    if desired[0] == desired[1]:
        return new
    generation = live.value["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def check_namespace(call: ApiRequest, namespaces: dict[tuple[str, str], Revision]) -> None:
    """Refuse to create in a namespace that is not there."""
    if call.resource.namespaced and ("", call.namespace) not in namespaces:
        details = {"name": call.namespace, "kind": "namespaces"}
        raise StatusError(404, "NotFound", f'namespaces "{call.namespace}" not found', details=details)
