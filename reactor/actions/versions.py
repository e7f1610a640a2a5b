"""Which API version of a route its cluster serves: asked once for each cluster and kind, and again after a 404."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from urllib.parse import quote
from weakref import WeakKeyDictionary

from bus.messages import RouteRef
from reactor.clients.port import KubeApi, NotFound


@dataclass(frozen=True, slots=True)
class RouteKind:
    """Where a kind of route lives. The version we like best comes first."""

    group: str
    plural: str
    versions: tuple[str, ...]


_GATEWAY, _SMI = "gateway.networking.k8s.io", "split.smi-spec.io"
KINDS: dict[str, RouteKind] = {
    # v1alpha2 is what linkerd-smi documents; v1alpha4 and v1alpha3 are other meshes', v1alpha1 has quantity weights.
    "TrafficSplit": RouteKind(_SMI, "trafficsplits", ("v1alpha2", "v1alpha4", "v1alpha3", "v1alpha1")),
    "HTTPRoute": RouteKind(_GATEWAY, "httproutes", ("v1", "v1beta1")),
    # GRPCRoute came to v1 later than HTTPRoute (Gateway API 1.1), so `v1` alone does not say that it is in there.
    "GRPCRoute": RouteKind(_GATEWAY, "grpcroutes", ("v1", "v1alpha2")),
}

_known: WeakKeyDictionary[KubeApi, MutableMapping[str, str]] = WeakKeyDictionary()


async def path_of(api: KubeApi, route: RouteRef) -> str:
    """Give the path of the route's object in a version that the cluster serves.

    Raises NotFound where the cluster serves none, and whatever else the API answers.
    """
    found = _known.setdefault(api, {})
    base = found.get(route.kind)
    if base is None:
        base = found[route.kind] = await _discover(api, KINDS[route.kind])
    # Quoted: an action comes off the bus, and a name with a slash in it must not lead to another object.
    namespace, name = quote(route.namespace, safe=""), quote(route.name, safe="")
    return f"{base}/namespaces/{namespace}/{KINDS[route.kind].plural}/{name}"


def forget(api: KubeApi, route: RouteRef) -> bool:
    """Ask again next time; whether there was anything to forget. A version may go away while we run (a CRD upgrade)."""
    return _known.get(api, {}).pop(route.kind, None) is not None


async def _discover(api: KubeApi, kind: RouteKind) -> str:
    for version in kind.versions:
        base = f"/apis/{kind.group}/{version}"
        try:
            document = await api.get(base)
        except NotFound:
            continue  # not served: the next version
        if any(resource.get("name") == kind.plural for resource in document.get("resources") or []):
            return base
    raise NotFound(
        f"{api.cluster}: serves {kind.plural}.{kind.group} in none of {', '.join(kind.versions)}: install its CRDs"
    )
