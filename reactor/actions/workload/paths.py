"""The path of an object of any kind in a cluster's API: built-in kinds by heart, others by asking the cluster once."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple
from urllib.parse import quote
from weakref import WeakKeyDictionary

from bus.messages import WorkloadRef
from reactor.actions.guarded import connection_of
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import KubeApi, NotFound


class ObjectKind(NamedTuple):
    """Plural and scope of a kind, for the paths of its objects."""

    plural: str
    namespaced: bool = True


_BY_HEART: Mapping[tuple[str, str], ObjectKind] = {
    ("v1", "ConfigMap"): ObjectKind("configmaps"),
    ("v1", "Secret"): ObjectKind("secrets"),
    ("v1", "ServiceAccount"): ObjectKind("serviceaccounts"),
    ("v1", "PersistentVolumeClaim"): ObjectKind("persistentvolumeclaims"),
    ("v1", "Service"): ObjectKind("services"),
    ("v1", "Pod"): ObjectKind("pods"),
    ("apps/v1", "Deployment"): ObjectKind("deployments"),
    ("apps/v1", "StatefulSet"): ObjectKind("statefulsets"),
    ("apps/v1", "DaemonSet"): ObjectKind("daemonsets"),
    ("apps/v1", "ReplicaSet"): ObjectKind("replicasets"),
    ("batch/v1", "Job"): ObjectKind("jobs"),
    ("batch/v1", "CronJob"): ObjectKind("cronjobs"),
}
_asked: WeakKeyDictionary[KubeApi, MutableMapping[tuple[str, str], ObjectKind]] = WeakKeyDictionary()


async def path_of(api: KubeApi, ref: WorkloadRef) -> str:
    """Give the path of the object. Raises Declined (KindMissing) where the cluster does not serve the kind."""
    kind = await kind_of(api, ref.api_version, ref.kind)
    namespace = f"/namespaces/{_quoted(ref.namespace)}" if kind.namespaced and ref.namespace else ""
    return f"{base(ref.api_version)}{namespace}/{kind.plural}/{_quoted(ref.name)}"


def base(api_version: str) -> str:
    """Give the path of an API version: `/api/v1`, `/apis/apps/v1`."""
    return f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"


async def kind_of(api: KubeApi, api_version: str, kind: str) -> ObjectKind:
    """Give how a kind is served. Raises Declined (KindMissing), and as KubeApi does."""
    if known := _BY_HEART.get((api_version, kind)):
        return known
    asked = _asked.setdefault(connection_of(api), {})
    if (api_version, kind) not in asked:
        # Only what is there is remembered: a CRD may be installed later.
        asked[api_version, kind] = await _ask(api, api_version, kind)
    return asked[api_version, kind]


async def _ask(api: KubeApi, api_version: str, kind: str) -> ObjectKind:
    try:
        document = await api.get(base(api_version))
    except NotFound:
        document = {}
    for resource in document.get("resources") or []:
        if resource.get("kind") == kind and "/" not in str(resource.get("name")):
            return ObjectKind(str(resource["name"]), bool(resource.get("namespaced")))
    raise Declined(
        "KindMissing", f"{api.cluster}: serves no {kind} of {api_version}: install its definition (CRD) there"
    )


def _quoted(text: str) -> str:
    """An action comes off the bus: a name with a slash in it must not lead to another object."""
    return quote(text, safe="")
