"""API version of a route that its cluster serves: asked once for each cluster and kind, and again after a 404."""

from __future__ import annotations

from collections.abc import MutableMapping
from urllib.parse import quote
from weakref import WeakKeyDictionary

from bus.messages import RouteRef
from reactor.actions.guarded import connection_of
from reactor.clients.api_versions import served
from reactor.clients.kubernetes_port import KubeApi
from rules.rulefile.route_kinds import RouteFormat

_known: WeakKeyDictionary[KubeApi, MutableMapping[RouteFormat, str]] = WeakKeyDictionary()


async def path_of(api: KubeApi, route: RouteRef, kind: RouteFormat) -> str:
    """Give the path of the route's object in a version that the cluster serves.

    Raises NotFound where the cluster serves none, and whatever else the API answers.
    """
    found = _known.setdefault(connection_of(api), {})
    base = found.get(kind)
    if base is None:
        base = found[kind] = await served(api, kind)
    # Quoted: an action comes off the bus, and a name with a slash in it must not lead to another object.
    namespace, name = quote(route.namespace, safe=""), quote(route.name, safe="")
    return f"{base}/namespaces/{namespace}/{kind.plural}/{name}"


def forget(api: KubeApi, kind: RouteFormat) -> bool:
    """Ask again next time; whether there was anything to forget. A version may go away while we run (a CRD upgrade)."""
    return _known.get(connection_of(api), {}).pop(kind, None) is not None
