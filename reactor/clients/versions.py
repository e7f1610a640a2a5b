"""Which API versions of routes there are, and which one a cluster serves."""

from __future__ import annotations

from dataclasses import dataclass

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


async def served(api: KubeApi, kind: RouteKind) -> str:
    """Give the base path of the version to use: the one we like best of those the cluster serves.

    Raises NotFound where it serves none, and as KubeApi does.
    """
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
