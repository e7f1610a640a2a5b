"""API paths of the kinds of workloads."""

from __future__ import annotations

from dataclasses import dataclass

from reactor.clients.kubernetes_port import KubeApi, NotFound
from rules.rulefile.sources import CustomKind

BUILT_IN = {
    "Deployment": ("apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "Pod": ("v1", "pods"),
    "Job": ("batch/v1", "jobs"),
    "Service": ("v1", "services"),
    "Ingress": ("networking.k8s.io/v1", "ingresses"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
}
"""Kind to its version and plural: these need no question to the server."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind as the API serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group, empty for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def base(self) -> str:
        """The path that its collections are below."""
        return base_of(self.api_version)


def base_of(api_version: str) -> str:
    """Give the path of a group and version: `/apis/apps/v1`, `/api/v1`."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


async def served_kind(api: KubeApi, kind: str | CustomKind) -> ServedKind:
    """Find out how the cluster serves a kind. Raises NotFound where it does not, and as KubeApi does."""
    if isinstance(kind, str):
        api_version, plural = BUILT_IN[kind]
        return ServedKind(api_version, kind, plural)
    document = await api.get(base_of(kind.api_version))
    for resource in document.get("resources") or []:
        if resource.get("kind") == kind.kind and "/" not in resource.get("name", "/"):
            return ServedKind(kind.api_version, kind.kind, resource["name"], resource.get("namespaced") is not False)
    raise NotFound(f"{api.cluster}: serves no {kind.kind} in {kind.api_version}: install its CRD")
