"""The inventory of routes: what the rules' routes look like now.

One watch for each cluster, kind and namespace (or selector) that the rules name. A route is told when it changes and
every 30 s while the watch holds. A named route that is not there is told as not existing. One that a selector no longer
gives is read by itself, and told once as it is: it may be deleted, or only have lost its label. Where the cluster does
not know the kind, or does not let us see it, nothing is told: its state is not known. A version that is served no more,
as after an upgrade of its CRDs, is looked for again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar, cast

from bus.messages import Route, RouteKind
from reactor.clients.api_versions import served
from reactor.clients.changes import ChangeType, ObjectChange, ObjectKey, key_of
from reactor.clients.copies import holding
from reactor.clients.kubernetes_port import JsonObject, KubeApi, NotFound
from reactor.clients.reflector import Reflector
from reactor.clients.watch_failures import REFUSED_SECONDS, NotServed
from reactor.runtime import telemetry
from reactor.runtime.retry_backoff import RetryBackoff
from reactor.sources.kubernetes.endpoints_watch import collection
from reactor.sources.kubernetes.retrying import retry_forever
from reactor.sources.kubernetes.route_projection import missing_route, route_from
from reactor.sources.republisher import Republisher, gather
from reactor.sources.source_context import SourceContext
from rules.kinds.traffic.model import RouteSelection
from rules.rulefile.route_kinds import RouteFormat, kind_of

NAME = "routes"
"""Name of this source in metrics and logs."""
REFRESH_SECONDS = 30.0
NOT_FOUND_MAX = 3  # in a row; one may be a CRD that is just being replaced
GOOD_SECONDS = 60.0  # a version that was served for so long, and is no more, is news
UNKNOWN = "rules name this kind of route, the settings do not"
log = logging.getLogger(__name__)

RuleRef: TypeAlias = int | str | None
T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Cluster, kind, namespace and selector of one watch."""

    cluster: str
    kind: RouteKind
    custom_kind: str
    namespace: str
    selector: str


def scopes(selections: Iterable[RouteSelection]) -> dict[Scope, list[RouteSelection]]:
    """Give the watches that serve these selections: named routes of one namespace share one."""
    found: dict[Scope, list[RouteSelection]] = defaultdict(list)
    for one in selections:
        selector = "" if one.name else one.selector or ""
        kind, custom_kind = cast("RouteKind", one.kind), one.custom_kind or ""
        found[Scope(one.cluster, kind, custom_kind, one.namespace or "", selector)].append(one)
    return dict(found)


async def run(selections: Sequence[RouteSelection], world: SourceContext) -> None:
    """Watch all of them until cancelled."""
    async with asyncio.TaskGroup() as group:
        for scope, wanted in scopes(selections).items():
            group.create_task(_follow(scope, wanted, world))


async def _follow(scope: Scope, wanted: Sequence[RouteSelection], world: SourceContext) -> None:
    """Watch one scope until cancelled, in whatever version it is served."""
    try:
        kind = kind_of(scope.kind, scope.custom_kind, world.route_kinds)
    except KeyError:
        log.warning("routes are not watched", extra={"reason": f"routeKinds.{scope.custom_kind}: {UNKNOWN}"})
        return
    backoff = RetryBackoff(first_seconds=0.5, most_seconds=REFUSED_SECONDS)
    while True:
        began = world.clock.monotonic()
        try:
            await _Inventory(scope, kind, wanted, world).run()
        except* NotServed as gone:
            where = {"cluster": scope.cluster, "kind": scope.kind, "reason": str(gone.exceptions[0])}
            log.warning("routes are not served any more as they were, looking for another version", extra=where)
        if world.clock.monotonic() - began > GOOD_SECONDS:
            backoff.succeeded()
        await world.clock.sleep(min(backoff.failed(), REFUSED_SECONDS))


class _Inventory:
    """One watch and what is told of it."""

    def __init__(
        self, scope: Scope, kind: RouteFormat, selections: Sequence[RouteSelection], world: SourceContext
    ) -> None:
        self._scope = scope
        self._kind = kind
        self._world = world
        # Without a name every object that the selector gives is meant, hence None.
        self._wanted: dict[str | None, set[RuleRef]] = defaultdict(set)
        for one in selections:
            self._wanted[one.name].add(one.rule)
        self._unlisted: Sequence[str] = sorted(filter(None, self._wanted))
        """Names of routes that rules name and no list has shown; all of them until the first list."""
        self._standing: Republisher[Route] = Republisher(
            world.tell, world.clock, on_facts_lost=world.on_facts_lost, period_seconds=REFRESH_SECONDS
        )
        self._left: asyncio.Queue[ObjectKey] = asyncio.Queue()

    async def run(self) -> None:
        """Watch until cancelled."""
        api = await self._world.clusters.get(self._scope.cluster)
        # However long that takes: a CRD may be installed, a permission granted, later.
        version = await self._insisting(partial(served, api, self._kind))
        path = collection(version, self._kind.plural, self._scope.namespace or None)
        reflector = Reflector(
            api, path, self._changed, clock=self._world.clock, label_selector=self._scope.selector or None,
            project=project, not_found_max=NOT_FOUND_MAX,
        )  # fmt: skip
        with holding(api, path, reflector.believed):
            await self._keep(api, version, reflector)

    async def _keep(self, api: KubeApi, version: str, reflector: Reflector) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run())
            group.create_task(self._standing.keep(lambda: None if reflector.doubted else reflector.seen))
            group.create_task(self._follow_those_that_left(api, version, reflector))

    async def _insisting(self, call: Callable[[], Awaitable[T]]) -> T:
        where = {"cluster": self._scope.cluster, "kind": self._scope.kind}
        return await retry_forever(call, self._world.clock, source=NAME, what="routes", where=where)

    async def _changed(self, changes: Sequence[ObjectChange]) -> None:
        seen: dict[str, Route] = {}
        for kind, found, _ in changes:
            key = key_of(found)
            if key is None or not key.namespace:
                continue  # the API has none of these; a name is what makes a route
            if kind is ChangeType.DELETED and self._scope.selector:
                self._left.put_nowait(key)
                continue
            for rule in self._rules(key.name):
                route = self._missing(key, rule) if kind is ChangeType.DELETED else self._projected(found, rule)
                seen[route.object] = route
        # The first batch is the whole list: what is named and not in it is not there.
        unlisted, self._unlisted = self._unlisted, ()
        for name in unlisted:
            for rule in sorted(self._wanted[name], key=repr):
                missing = self._missing(ObjectKey(self._scope.namespace, name), rule)
                if self._standing.get(missing.object) is None:
                    seen.setdefault(missing.object, missing)
        await gather(self._tell(route) for route in seen.values())

    async def _follow_those_that_left(self, api: KubeApi, version: str, reflector: Reflector) -> None:
        """Read what the selector gives no more. The watch says DELETED either way; told as gone, a route that has only
        lost its label would be gone for other rules as well."""
        while True:
            key = await self._left.get()
            path = f"{collection(version, self._kind.plural, key.namespace)}/{key.name}"
            found = await self._insisting(partial(_read, api, path))
            if key in reflector.objects:
                continue  # it came back meanwhile, and was told
            for rule in self._rules(key.name):
                missing = self._missing(key, rule)
                route = missing if found is None else self._projected(project(found), rule)
                await self._standing.say_once(missing.object, route)

    def _rules(self, name: str) -> list[RuleRef]:
        return sorted(self._wanted.get(name, set()) | self._wanted.get(None, set()), key=repr)

    def _projected(self, found: JsonObject, rule: RuleRef) -> Route:
        scope, at = self._scope, self._world.clock.now()
        custom = (scope.custom_kind, self._kind) if scope.custom_kind else None
        return route_from(scope.cluster, scope.kind, found, rule, at=at, custom=custom)

    def _missing(self, key: ObjectKey, rule: RuleRef) -> Route:
        scope, at = self._scope, self._world.clock.now()
        return missing_route(scope.cluster, scope.kind, key, rule, at=at, custom_kind=scope.custom_kind)

    async def _tell(self, route: Route) -> None:
        before = self._standing.get(route.object)
        changed = before is None or route.model_copy(update={"observed_at": before.observed_at}) != before
        if changed and route.problem:
            telemetry.source_errors.labels(NAME, "Malformed").inc()
            log.warning("a route cannot be used", extra={"route": route.object, "problem": route.problem})
        await self._standing.say(route.object, route, changed=changed)


async def _read(api: KubeApi, path: str) -> JsonObject | None:
    try:
        return await api.get(path)
    except NotFound:
        return None


def project(found: JsonObject) -> JsonObject:
    """Keep the metadata that is read, here and by code that writes to it, and the spec: managedFields alone can be
    larger than the rest."""
    metadata = found.get("metadata")
    kept = ("namespace", "name", "resourceVersion", "labels", "annotations")
    small = {key: metadata.get(key) for key in kept} if isinstance(metadata, dict) else None
    return {"metadata": small, "spec": found.get("spec")}
