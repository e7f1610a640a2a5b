"""API versions of routes, and the choice of the one that a cluster serves."""

from __future__ import annotations

from reactor.clients.kubernetes_port import KubeApi, NotFound
from rules.rulefile.route_kinds import RouteFormat


async def served(api: KubeApi, kind: RouteFormat) -> str:
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
