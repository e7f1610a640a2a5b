"""Objects on a cluster that a rule could be about: routes, workloads, zones. Read-only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar, get_args

from bus.messages import Route, RouteKind
from reactor.clients.api_versions import served
from reactor.clients.changes import metadata_of
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, KubeApi, NotFound
from reactor.clients.route_entries import Unreadable, rules_of
from reactor.runtime.errors import Retryable, Terminal
from reactor.sources.kubernetes import node_health
from reactor.sources.kubernetes.route_projection import route_from
from reactor.sources.kubernetes.workload_kinds import BUILT_IN, base_of
from rules.rulefile.route_kinds import ROUTE_KINDS
from rules.rulefile.sources import NodeWatch

ZONE_LABEL = NodeWatch.model_fields["zone_label"].default
WORKLOADS = ("Deployment", "StatefulSet")
_SYSTEM = "kube-"
"""Namespaces of Kubernetes itself: what runs there belongs to its cluster."""
_EXPECTED = ("TrafficSplit", "HTTPRoute", "GRPCRoute")
"""Kinds of routes that are missed where a cluster does not serve them; of others no cluster has all."""
_NEVER = datetime.fromtimestamp(0, UTC)  # nothing that is made of a route here says when it was seen
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundCopy:
    """A workload, as one cluster has it."""

    kind: str
    namespace: str
    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class ClusterFindings:
    """Objects that were found on one cluster."""

    cluster: str
    routes: tuple[Route, ...] = ()
    """Routes with two or more backends."""
    copies: tuple[FoundCopy, ...] = ()
    zones: tuple[tuple[str, int], ...] = ()
    """Zones of nodes, by name, each with the number of its nodes."""
    unread: tuple[str, ...] = ()
    """Objects that could not be read, and why."""


async def look(api: KubeApi, namespaces: Collection[str] = ()) -> ClusterFindings:
    """Read a cluster. What it does not serve or does not let us see is told, and the rest is read."""
    reading, found = _Reading(api, namespaces), ClusterFindings(api.cluster)
    try:
        found = replace(found, routes=await reading.routes())
        found = replace(found, copies=await reading.copies())
        found = replace(found, zones=await reading.zones())
    except ApiUnavailable as error:  # each further question would wait as long
        reading.unread.append(f"{api.cluster} cannot be asked: {error}")
    return replace(found, unread=tuple(reading.unread))


class _Reading:
    def __init__(self, api: KubeApi, namespaces: Collection[str]) -> None:
        self._api = api
        self._namespaces = namespaces
        self.unread: list[str] = []

    async def routes(self) -> tuple[Route, ...]:
        """Give those that have two or more backends; where they have rules, each rule that has."""
        found: list[Route] = []
        for kind in (one for one in get_args(RouteKind) if one in ROUTE_KINDS):
            served_ = partial(served, self._api, ROUTE_KINDS[kind])
            base = await self._asked(f"{kind}s", served_, expected=kind in _EXPECTED)
            path = f"{base}/{ROUTE_KINDS[kind].plural}"
            listed = await self._asked(f"{kind}s", partial(self._api.list, path)) if base is not None else None
            for one in listed or ():
                if self._is_meant(one):
                    found += [route for route in _projected(self._api.cluster, kind, one) if len(route.backends) > 1]
        return tuple(sorted(found, key=lambda route: route.object))

    async def copies(self) -> tuple[FoundCopy, ...]:
        """Give Deployments and StatefulSets that run. Those that something else makes are its own business."""
        found: list[FoundCopy] = []
        for kind in WORKLOADS:
            version, plural = BUILT_IN[kind]
            listed = await self._asked(f"{kind}s", partial(self._api.list, f"{base_of(version)}/{plural}"))
            for one in listed or ():
                metadata, spec = metadata_of(one), one.get("spec") or {}
                replicas = spec.get("replicas", 1)  # the API's own default
                if self._is_meant(one) and replicas and not metadata.get("ownerReferences"):
                    found.append(FoundCopy(kind, metadata["namespace"], metadata["name"], replicas))
        return tuple(sorted(found, key=lambda copy: (copy.namespace, copy.kind, copy.name)))

    async def zones(self) -> tuple[tuple[str, int], ...]:
        """Give the zones that nodes carry."""
        listed: Sequence[JsonObject] = await self._asked("Nodes", partial(self._api.list, "/api/v1/nodes")) or ()
        counted = node_health.tally(node_health.node_of(one, ZONE_LABEL) for one in listed)
        return tuple(sorted((zone, tally.nodes) for zone, tally in counted.items()))

    def _is_meant(self, found: JsonObject) -> bool:
        namespace = str(metadata_of(found).get("namespace") or "")
        return namespace in self._namespaces if self._namespaces else not namespace.startswith(_SYSTEM)

    async def _asked(self, what: str, call: Callable[[], Awaitable[T]], *, expected: bool = True) -> T | None:
        """Ask, and note where there is no answer. Raises ApiUnavailable."""
        try:
            return await call()
        except ApiUnavailable:
            raise
        except NotFound:
            if expected:
                self.unread.append(f"{self._api.cluster} has no {what}: its API does not serve them")
        except (Retryable, Terminal) as error:
            self.unread.append(f"{self._api.cluster}: {what} could not be read: {error}")
        return None


def _projected(cluster: str, kind: RouteKind, found: JsonObject) -> list[Route]:
    """Read a route, once for each of its rules."""
    try:
        rules = rules_of(ROUTE_KINDS[kind], found)
    except Unreadable:
        return []  # nothing that a rule could be about
    # A rule is named by its place, but where the route has no other.
    places = range(rules) if rules > 1 else [None]
    return [route_from(cluster, kind, found, place, at=_NEVER) for place in places]
