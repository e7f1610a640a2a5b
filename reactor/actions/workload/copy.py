"""Makes the copy of an object that another cluster can take: pure.

Kept are name, namespace, labels, annotations and the desired state. What the source cluster's own machinery wrote
(identity, status, addresses, volumes, ownership, finalizers) would be wrong or refused elsewhere. Sources: Karmada
pkg/resourceinterpreter/default/native/prune; Velero's restore actions strip the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

from reactor.clients.changes import metadata_of, strings_of
from reactor.clients.kubernetes_port import JsonObject

SCALED = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
"""Built-in kinds that run `spec.replicas` pods even where the field is absent (1)."""
TOKEN_SECRETS = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})
"""Secrets that prove an identity to the cluster that made them, and mean nothing to another."""
_LEFT_BEHIND = (
    "reactor/", "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/", "pv.kubernetes.io/",
    "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "kubernetes.io/service-account.",
    "control-plane.alpha.kubernetes.io/leader",
)  # fmt: skip
"""Beginnings of annotations that are about the cluster that they are in."""
_JOB_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")


def portable(found: JsonObject) -> JsonObject:
    """Give the object as another cluster may be asked for it. What is given shares nothing with what was found."""
    metadata = metadata_of(found)
    copy = deepcopy({key: value for key, value in found.items() if key not in ("metadata", "status")})
    kept: JsonObject = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    for key in ("labels", "annotations"):
        if texts := {name: text for name, text in strings_of(metadata.get(key)).items() if not _left_behind(key, name)}:
            kept[key] = texts
    copy["metadata"] = kept
    template = _dict(_dict(copy.get("spec")).get("template"))
    metadata_of(template).pop("creationTimestamp", None)  # always null: what Go writes for "no time"
    _dict(template.get("spec")).pop("nodeName", None)
    if strip := _KINDS.get(str(copy.get("kind"))):
        strip(copy)
    return copy


def travels(found: JsonObject) -> bool:
    """True if the object means anything in another cluster: all but Secrets with a token of this one."""
    return found.get("kind") != "Secret" or found.get("type") not in TOKEN_SECRETS


def scaled(wanted: JsonObject, replicas: int) -> JsonObject:
    """Give the object with so many replicas, where its kind has any."""
    spec = _dict(wanted.get("spec"))
    if wanted.get("kind") not in SCALED and "replicas" not in spec:
        return wanted
    return {**wanted, "spec": {**spec, "replicas": replicas}}


def labelled(wanted: JsonObject, labels: Mapping[str, str]) -> JsonObject:
    """Give the object with these labels beside its own."""
    return _noted(wanted, "labels", labels)


def annotated(wanted: JsonObject, annotations: Mapping[str, str]) -> JsonObject:
    """Give the object with these annotations beside its own."""
    return _noted(wanted, "annotations", annotations)


def contains(live: object, wanted: object) -> bool:
    """True if `live` has all that is wanted. It may have more: defaults, and what others have added to mappings."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(contains(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(live, list) and len(live) == len(wanted) and all(map(contains, live, wanted))
        )  # a list that another writer has lengthened is compared by the server, which knows its keys
    return live == wanted


def _noted(wanted: JsonObject, where: str, texts: Mapping[str, str]) -> JsonObject:
    metadata = metadata_of(wanted)
    merged = {**strings_of(metadata.get(where)), **texts}
    return {**wanted, "metadata": {**metadata, where: merged}} if merged else wanted


def _left_behind(where: str, name: str) -> bool:
    return where == "annotations" and name.startswith(_LEFT_BEHIND)


def _dict(found: object) -> JsonObject:
    return found if isinstance(found, dict) else {}


def _service(copy: JsonObject) -> None:
    spec = _dict(copy.get("spec"))
    if spec.get("clusterIP") != "None":  # headless was asked for by its author, an address is what the cluster gave
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    for field in ("healthCheckNodePort", "ipFamilies"):
        spec.pop(field, None)
    for port in spec.get("ports") or []:
        _dict(port).pop("nodePort", None)


def _claim(copy: JsonObject) -> None:
    # The claim moves, no data does: a snapshot or claim that it was filled from is not there either.
    for field in ("volumeName", "dataSource", "dataSourceRef"):
        _dict(copy.get("spec")).pop(field, None)


def _account(copy: JsonObject) -> None:
    copy.pop("secrets", None)  # tokens of the source cluster


def _job(copy: JsonObject) -> None:
    spec = _dict(copy.get("spec"))
    if spec.get("manualSelector"):
        return
    spec.pop("selector", None)  # made from the job's uid, which is another one in every cluster
    for metadata in (metadata_of(copy), metadata_of(_dict(spec.get("template")))):
        for label in _JOB_LABELS:
            _dict(metadata.get("labels")).pop(label, None)


def _pod(copy: JsonObject) -> None:
    spec = _dict(copy.get("spec"))
    spec.pop("nodeName", None)
    injected = {name for one in spec.get("volumes") or [] if (name := str(one.get("name"))).startswith(_TOKEN_VOLUME)}
    containers = [_dict(one) for field in ("containers", "initContainers") for one in spec.get(field) or []]
    for where, field in ((spec, "volumes"), *((one, "volumeMounts") for one in containers)):
        left = [item for item in where.get(field) or [] if item.get("name") not in injected]
        if left:
            where[field] = left
        else:
            where.pop(field, None)  # an empty list is never stored, so it would look as if it were still to be written


_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - the name of a volume that the ServiceAccount admission adds
_KINDS: Mapping[str, Callable[[JsonObject], None]] = {
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "ServiceAccount": _account,
    "Job": _job,
    "Pod": _pod,
}
