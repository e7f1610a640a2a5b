"""EndpointsWatch: a Service is Healthy while at least `minReady` of its endpoints are ready.

    - name: readiness
      kind: EndpointsWatch
      cluster: east
      namespace: shop            # default: all
      selector: app=checkout     # labels of the EndpointSlices, which carry those of their Service; default: all
      minReady: 1
      # target: service/{cluster}/{namespace}/{service}; labels of the Service may be used as well

Nothing is said before the whole list has been read, and nothing is repeated while the watch is lost. Services are
watched beside their slices, so that one that never had an endpoint is known too; without the permission to list
Services, only those are known that have or had a slice. An ExternalName Service has no endpoints and is left out.
Several Services of one target: the worst speaks, and one that is gone only where no other is left. A target that no
Service makes any more, as a label has changed, is Unknown, said once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from bus.messages import Health
from reactor.clients.changes import ChangeType, ObjectChange, ObjectKey, key_of, state_of_objects
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.sources.aggregator import TargetAggregator
from reactor.sources.kubernetes.endpoints import (
    Readiness,
    ServiceName,
    labels_of,
    project_service,
    project_slice,
    readiness,
    service_of,
)
from reactor.sources.kubernetes.service_looks import ServiceLooks
from reactor.sources.publisher import HealthPublisher
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import EndpointsWatch

GONE_SECONDS = 3600.0
"""A Service that is deleted is Unhealthy for so long, then forgotten: names come and go without end."""
FAILURES_KEPT = 1000
"""Newest failures of which it is known when they were found. Who acts on one asks about it within milliseconds."""


async def run(source: EndpointsWatch, world: SourceContext) -> None:
    """Watch until cancelled."""
    await ServiceWatcher(source, world, await world.clusters.get(source.cluster)).run()


def collection(group_version: str, plural: str, namespace: str | None) -> str:
    """Give the path of a collection, of one namespace or of all."""
    return f"{group_version}/namespaces/{namespace}/{plural}" if namespace else f"{group_version}/{plural}"


@dataclass(slots=True)
class _WatchedService:
    """Known state of one Service."""

    slices: dict[str, JsonObject] = field(default_factory=dict)
    object: JsonObject | None = None
    labels: dict[str, str] = field(default_factory=dict)
    gone_at: float | None = None

    def look(self) -> None:
        """Take its labels: the Service's own, else those of its first slice; of one that is gone the last ones."""
        found = self.object or next((self.slices[name] for name in sorted(self.slices)), None)
        self.labels = self.labels if found is None else labels_of(found)


class ServiceWatcher:
    """The Services of one source, and how many of their endpoints are ready."""

    def __init__(self, source: EndpointsWatch, world: SourceContext, api: WatchApi) -> None:
        self._source = source
        self._clock = world.clock
        self._services: dict[ServiceName, _WatchedService] = defaultdict(_WatchedService)
        self.publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
        self.aggregator: TargetAggregator[ServiceName] = TargetAggregator(
            self.publisher, world.clock, self._seen, self._proven, doubted=self._doubted
        )
        self.slices = Reflector(
            api, collection("/apis/discovery.k8s.io/v1", "endpointslices", source.namespace), self._slices_changed,
            clock=world.clock, label_selector=source.selector, project=project_slice,
        )  # fmt: skip
        self.services = Reflector(
            api, collection("/api/v1", "services", source.namespace), self._services_changed,
            clock=world.clock, label_selector=source.selector, project=project_service,
        )  # fmt: skip
        self._looks = ServiceLooks(
            api, world.clock, source.selector, wanted=self._wanted, shown=self._shown,
            failed_at=lambda moment: moment in self._failures, list_all=self.slices.look_again,
            seen=self.aggregator.speak,
        )  # fmt: skip
        self._requests = world.requests
        self._failures: deque[datetime] = deque(maxlen=FAILURES_KEPT)
        """Moments at which a Service was found Unhealthy."""
        self._begun = False
        self._unsaid: set[ServiceName] = set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.slices.run())
            group.create_task(self.services.run())
            group.create_task(self._looks.run())
            group.create_task(self.aggregator.keep(self._looks.look_again, self._requests))
            group.create_task(self._forget_gone())

    async def _slices_changed(self, changes: Sequence[ObjectChange]) -> None:
        touched: set[ServiceName] = set()
        broken: set[ServiceName] = set()
        for kind, found, unbroken in changes:
            name, key = service_of(found), key_of(found)
            if name is None or key is None:
                continue
            if not unbroken:
                broken.add(name)
            service = self._services[name]
            service.labels = service.labels or labels_of(found)
            if kind is ChangeType.DELETED:
                service.slices.pop(key.name, None)
            else:
                service.slices[key.name] = found
            touched.add(name)
        if not self._begun:
            # The first whole list: from here on, a Service without a slice is known to have no endpoints.
            self._begun = True
            touched = set(self._services)
        await self._say(touched | self._unsaid, self.slices.look.ended, broken)
        self._unsaid = set()

    async def _services_changed(self, changes: Sequence[ObjectChange]) -> None:
        touched: set[ServiceName] = set()
        for kind, found, _ in changes:
            key = key_of(found)
            if key is None or found["type"] == "ExternalName":
                continue
            name = ServiceName(*key)
            service = self._services[name]
            service.object = None if kind is ChangeType.DELETED else found
            service.labels = labels_of(found)
            touched.add(name)
        if self._begun and self.slices.connected:
            await self._say(touched, self.services.look.ended)
        else:
            # While the slices are not seen, having none of them proves nothing.
            self._unsaid |= touched

    def _seen(self, name: ServiceName) -> datetime | None:
        """A Service is seen by its slices: not while a LIST that is not believed lacks one of them."""
        return None if self._doubted(name) else self.slices.seen

    def _proven(self, name: ServiceName) -> datetime | None:
        listed, alone = None if self._doubted(name) else self.slices.proven, self._looks.seen_at(name)
        return max(listed, alone) if listed is not None and alone is not None else listed

    def _wanted(self) -> Mapping[ServiceName, datetime] | None:
        """The Services at which a look is needed now, and from when on; None where the copy of one of them cannot be
        believed."""
        wanted: dict[ServiceName, datetime] = {}
        for target in self.publisher.wanted:
            makers, moment = self.aggregator.makers(target), self.publisher.wanted_from(target)
            if not makers or moment is None:
                return None
            wanted |= {name: max(moment, wanted.get(name, moment)) for name in makers}
        return None if not self.slices.connected or any(map(self._doubted, wanted)) else wanted

    def _shown(self, name: ServiceName) -> dict[ObjectKey, JsonObject]:
        service = self._services.get(name)
        return (
            {} if service is None else {ObjectKey(name.namespace, one): found for one, found in service.slices.items()}
        )

    def _doubted(self, name: ServiceName) -> bool:
        service, doubted = self._services.get(name), self.slices.doubted
        return (
            bool(doubted)
            and service is not None
            and any(ObjectKey(name.namespace, one) in doubted for one in service.slices)
        )

    async def _say(self, names: set[ServiceName], moment: datetime, broken: Set[ServiceName] = frozenset()) -> None:
        """Say how these are. `moment`: when what is new was found, of a Service or of its slices."""
        look = self.slices.change._replace(ended=moment)
        for name in sorted(names):
            service = self._services[name]
            service.look()
            count = readiness(service.slices.values())
            exists = bool(service.slices) or service.object is not None
            service.gone_at = None if exists else service.gone_at or self._clock.monotonic()
            labels = {
                **service.labels,
                "cluster": self._source.cluster,
                "namespace": name.namespace,
                "service": name.name,
            }
            status = Health.HEALTHY if count.ready >= self._source.min_ready else Health.UNHEALTHY
            if status is Health.UNHEALTHY:
                self._failures.append(moment)
            detail = self._detail(count, exists=exists)
            self.aggregator.note(
                name, status, labels=labels, look=look, detail=detail, gone=not exists,
                version=state_of_objects(service.slices.values()), unbroken=name not in broken,
                healthy_percent=100 * count.ready / count.total if count.total else 0,
            )  # fmt: skip
        await self.aggregator.speak()

    def _detail(self, count: Readiness, *, exists: bool) -> str:
        if not exists:
            return "the Service is gone" if self.services.synced.is_set() else "there are no endpoints"
        wanted = f", {self._source.min_ready} wanted" if self._source.min_ready > 1 else ""
        return f"{count.ready} of {count.total} endpoints ready{wanted}"

    async def _forget_gone(self) -> None:
        """Forget, from time to time, the Services that are long gone."""
        while True:
            await self._clock.sleep(GONE_SECONDS / 10)
            now = self._clock.monotonic()
            for name, service in [*self._services.items()]:
                if service.gone_at is not None and now - service.gone_at >= GONE_SECONDS:
                    self.aggregator.forget(name)
                    del self._services[name]
