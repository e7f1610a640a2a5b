"""Kinds of object that a new cluster has, and the properties of each that the API needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reactor.demo.kube.objects import JsonObject, without


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`, read from the object with a simple JSONPath."""

    name: str
    path: str
    kind: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One plural in one version of one group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Field selectors beside metadata.name and metadata.namespace; anything else is a 400, as upstream."""
    generation: bool = False
    """True if `metadata.generation` counts the changes of this kind's desired state."""
    schema: JsonObject | None = None
    """The structural schema of a custom resource; None for built-in kinds."""
    columns: tuple[Column, ...] = ()
    stored_as: tuple[str, str] | None = None
    """Group and plural of the collection that really holds the objects, where that is another one."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Fields that are called differently in the stored form: served name to stored name."""

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name of messages and of RBAC: `trafficsplits.split.smi-spec.io`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def collection(self) -> tuple[str, str]:
        return self.stored_as or (self.group, self.plural)

    @property
    def custom(self) -> bool:
        return self.schema is not None

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def to_stored(self, served: JsonObject) -> JsonObject:
        """Give what the store keeps: the same for every version."""
        bare = without(served, "apiVersion", "kind")
        return {self.renames.get(name, name): value for name, value in bare.items()} if self.renames else bare

    def to_served(self, stored: JsonObject) -> JsonObject:
        """Give what clients of this version see."""
        if self.renames:
            back = {stored_name: name for name, stored_name in self.renames.items()}
            stored = {back.get(name, name): value for name, value in stored.items()}
        return {"apiVersion": self.group_version, "kind": self.kind, **stored}


_POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip
_EVENT_RENAMES = {
    "note": "message", "regarding": "involvedObject", "reportingController": "reportingComponent",
    "deprecatedSource": "source", "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp",
}  # fmt: skip
_SCALED = ("status", "scale")
_STATUS = ("status",)


def _core(plural: str, kind: str, *short_names: str, **more: object) -> Resource:
    return Resource("", "v1", plural, kind, short_names=short_names, **more)  # type: ignore[arg-type]  # each a field of Resource


def _apps(plural: str, kind: str, short_name: str, subresources: tuple[str, ...]) -> Resource:
    return Resource("apps", "v1", plural, kind, True, subresources, (short_name,), generation=True)


BUILT_IN: tuple[Resource, ...] = (
    _core("pods", "Pod", "po", subresources=("status", "eviction"), fields=_POD_FIELDS, generation=True),
    _core("nodes", "Node", "no", namespaced=False, subresources=_STATUS, fields=("spec.unschedulable",)),
    _core("namespaces", "Namespace", "ns", namespaced=False, subresources=_STATUS, fields=("status.phase",)),
    _core("services", "Service", "svc", subresources=_STATUS, fields=("spec.clusterIP", "spec.type")),
    _core("configmaps", "ConfigMap", "cm"),
    _core("secrets", "Secret", fields=("type",)),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    _core("events", "Event", "ev", fields=_EVENT_FIELDS),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=_STATUS),
    _apps("deployments", "Deployment", "deploy", _SCALED),
    _apps("statefulsets", "StatefulSet", "sts", _SCALED),
    _apps("replicasets", "ReplicaSet", "rs", _SCALED),
    _apps("daemonsets", "DaemonSet", "ds", _STATUS),
    Resource("batch", "v1", "jobs", "Job", subresources=_STATUS, fields=("status.successful",), generation=True),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", generation=True),
    Resource(
        "events.k8s.io", "v1", "events", "Event", short_names=("ev",), fields=("reason", "type"),
        stored_as=("", "events"), renames=_EVENT_RENAMES,
    ),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, _STATUS, ("pdb",), generation=True),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, (), ("netpol",), generation=True),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True, _STATUS, ("ing",), generation=True),
    Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, _STATUS,
        ("crd", "crds"), generation=True,
    ),
)  # fmt: skip
