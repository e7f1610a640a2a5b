"""NodeWatch: nodes by their Ready condition, zones by their nodes, and what is to be known before a zone may go.

    - {name: nodes, kind: NodeWatch, cluster: prod}      # zoneLabel: topology.kubernetes.io/zone

Targets are `node/{cluster}/{node}` (with the label zone) and `zone/<cluster>/<zone>`. A node that is deleted, and a
zone that has lost its last node, is Unknown, said once: that no node is there proves nothing. Several nodes of one
target, by a template of its own: the worst counts.

The inventory of zones needs to see Pods, EndpointSlices and node Leases too. What may not be read is not made up: the
demand is unknown, and so are the expired leases; but that no Service is confined to one zone is only said when the
slices have been read. While the API server does not answer, the inventory says so and shows what was last seen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence, Set
from datetime import datetime
from typing import NamedTuple

from bus.messages import Health, ZoneInventory, Zones
from reactor.clients.changes import ChangeType, ObjectChange, ObjectKey, digest, key_of
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.sources.aggregator import TargetAggregator
from reactor.sources.kubernetes import heartbeats, node_health, pod_requests, service_zones
from reactor.sources.kubernetes.heartbeats import Heartbeats
from reactor.sources.kubernetes.lease_watch import LEASES
from reactor.sources.kubernetes.node_health import Node, Tally, node_of, tally, zone_verdict
from reactor.sources.publisher import HealthPublisher
from reactor.sources.republisher import Republisher, gather
from reactor.sources.source_context import SourceContext
from reactor.sources.standing_fact import LONG_AGO
from rules.rulefile.sources import NodeWatch
from rules.rulefile.targets import fill

LOOK_SECONDS = 5.0
"""Seconds between looks at pods, slices and leases, which change all the time. What the last look could not read is
looked at as soon as it is listed; a node's change is told at once."""
NOT_READABLE = "EndpointSlices cannot be read"
"""Entry in place of the Services of one zone where these cannot be known."""


async def run(source: NodeWatch, world: SourceContext) -> None:
    """Watch until cancelled."""
    await NodeWatcher(source, world, await world.clusters.get(source.cluster)).run()


class _Rest(NamedTuple):
    """Contents of the inventory of zones beside the zones' nodes, as of the last look."""

    demand_nodes: int | None = None
    quorum_members: dict[str, int] = {}  # noqa: RUF012 - a default that is never changed
    quorum_size: int | None = None
    single_zone_services: tuple[str, ...] = (NOT_READABLE,)
    leases_expired: dict[str, float] = {}  # noqa: RUF012 - a default that is never changed


class NodeWatcher:
    """The nodes of one cluster, and what runs on them."""

    def __init__(self, source: NodeWatch, world: SourceContext, api: WatchApi) -> None:
        self._source = source
        self._clock = world.clock
        self._nodes: dict[str, Node] = {}
        self._zones: dict[str, Tally] = {}
        self._rest = _Rest()
        self._unread: Set[str] = {"pods", "slices", "leases"}
        """Of these, those that the last look could not read."""
        self._listed = asyncio.Event()
        """Set when one of these has been listed since."""
        self._beats = Heartbeats(world.clock.monotonic(), look_seconds=LOOK_SECONDS)
        self.publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
        """Publisher of the health of zones."""
        self.aggregator: TargetAggregator[str] = TargetAggregator(
            HealthPublisher(source, world.tell, world.clock, world.on_facts_lost),
            world.clock,
            lambda name: self.nodes.seen_of(ObjectKey("", name)),
            lambda name: self.nodes.proven_of(ObjectKey("", name)),
            doubted=lambda name: ObjectKey("", name) in self.nodes.doubted,
        )
        self.inventory: Republisher[Zones] = Republisher(
            world.tell, world.clock, on_facts_lost=world.on_facts_lost, period_seconds=source.refresh_seconds
        )
        clock = world.clock
        self._requests = world.requests
        self.nodes = Reflector(api, "/api/v1/nodes", self._nodes_changed, clock=clock, project=node_health.project)
        self.pods = Reflector(api, "/api/v1/pods", self._pods_changed, clock=clock, project=pod_requests.project)
        self.slices = Reflector(
            api, "/apis/discovery.k8s.io/v1/endpointslices", self._slices_changed, clock=clock,
            project=service_zones.project,
        )  # fmt: skip
        self.leases = Reflector(
            api, f"{LEASES}/namespaces/kube-node-lease/leases", self._leases_changed, clock=clock,
            project=heartbeats.project,
            idle_seconds=heartbeats.LEASE_SECONDS / 2,  # as in LeaseWatch
        )  # fmt: skip

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in (self.nodes, self.pods, self.slices, self.leases):
                group.create_task(reflector.run())
            doubted = self._zone_is_doubted
            zones = self.publisher.keep(
                self._zone_seen, self.nodes.look_again, self._requests, doubted, proven=self._zone_proven
            )
            group.create_task(zones)
            group.create_task(self.aggregator.keep(self.nodes.look_again, self._requests))
            # Each look is dated by itself: it shows how reachable the API server was, too.
            group.create_task(self.inventory.keep(lambda: None if self.nodes.doubted else LONG_AGO))
            group.create_task(self._look())

    async def _nodes_changed(self, changes: Sequence[ObjectChange]) -> None:
        broken: set[str] = set()
        for kind, found, unbroken in changes:
            node = node_of(found, self._source.zone_label)
            if not unbroken:
                broken.add(node.zone)
            if kind is ChangeType.DELETED:
                self._nodes.pop(node.name, None)
                self.aggregator.leave(node.name, "the node is gone")
            else:
                self._nodes[node.name] = node
                self._note(node, unbroken=unbroken)
        before, self._zones = self._zones, tally(self._nodes.values())
        zones = sorted(before.keys() | self._zones.keys())
        await gather([
            self.aggregator.speak(),
            *(self._say_zone(zone, unbroken=zone not in broken) for zone in zones),
            self._say_inventory(),
        ])  # fmt: skip

    def _note(self, node: Node, *, unbroken: bool) -> None:
        labels = {"cluster": self._source.cluster, "node": node.name}
        if node.zone:
            labels["zone"] = node.zone
        self.aggregator.note(
            node.name, node.verdict.status, labels=labels, look=self.nodes.change, detail=node.verdict.detail,
            version=node.version, unbroken=unbroken,
        )  # fmt: skip

    def _zone_seen(self, target: str) -> datetime | None:
        """A zone is not seen while a LIST that is not believed lacks one of its nodes."""
        return None if self._zone_is_doubted(target) else self.nodes.seen

    def _zone_proven(self, target: str) -> datetime | None:
        return None if self._zone_is_doubted(target) else self.nodes.proven

    def _zone_is_doubted(self, target: str) -> bool:
        return target in self._doubted_zones()

    def _doubted_zones(self) -> set[str]:
        zones = {node.zone for key in self.nodes.doubted if (node := self._nodes.get(key.name)) is not None}
        return {self._target_of_zone(zone) for zone in zones if zone}

    def _target_of_zone(self, zone: str) -> str:
        return fill("zone/{cluster}/{zone}", {"cluster": self._source.cluster, "zone": zone})

    async def _say_zone(self, zone: str, *, unbroken: bool) -> None:
        labels = {"cluster": self._source.cluster, "zone": zone}
        target = self._target_of_zone(zone)
        if self._zone_is_doubted(target):
            return
        if zone not in self._zones:
            await self.publisher.say_once(target, Health.UNKNOWN, labels=labels, detail="no node of it is left")
            return
        verdict = zone_verdict(self._zones[zone])
        versions = [node.version for node in self._nodes.values() if node.zone == zone and node.counts]
        await self.publisher.say(
            target, verdict.status, labels=labels, detail=verdict.detail, look=self.nodes.change,
            version=digest(versions), unbroken=unbroken,
        )  # fmt: skip

    async def _leases_changed(self, changes: Sequence[ObjectChange]) -> None:
        for kind, found, _ in changes:
            key = key_of(found)
            if key is None:
                continue
            if kind is ChangeType.DELETED:
                self._beats.gone(key.name)
            else:
                self._beats.seen(key.name, heartbeats.mark(found), self._clock.monotonic())
        self._look_at_what_was_unread("leases")

    async def _pods_changed(self, _: Sequence[ObjectChange]) -> None:
        self._look_at_what_was_unread("pods")

    async def _slices_changed(self, _: Sequence[ObjectChange]) -> None:
        self._look_at_what_was_unread("slices")

    def _look_at_what_was_unread(self, what: str) -> None:
        if what in self._unread:
            self._listed.set()

    async def _look(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._listed.wait()
            self._listed.clear()
            self._beats.look(self._clock.monotonic(), listening=self.leases.connected)
            watched = {"pods": self.pods, "slices": self.slices, "leases": self.leases}
            self._unread = {what for what, reflector in watched.items() if not reflector.connected}
            self._rest = self._looked()
            await self._say_inventory()

    async def _say_inventory(self) -> None:
        if self.nodes.doubted:
            return  # how many nodes there are is not known
        marked = node_health.marked(self._nodes.values())
        inventory = Zones(
            cluster=self._source.cluster,
            zones={
                name: ZoneInventory(nodes=one.nodes, healthy_nodes=one.ready, marked=marked.get(name))
                for name, one in self._zones.items()
            },
            api_reachable=self.nodes.connected,
            maintenance=next((said for node in sorted(self._nodes) if (said := self._nodes[node].maintenance)), ""),
            observed_at=self._clock.now(),
            **self._rest._asdict(),
        )
        before = self.inventory.get(self._source.cluster)
        changed = before is None or inventory.model_copy(update={"observed_at": before.observed_at}) != before
        await self.inventory.say(self._source.cluster, inventory, changed=changed)

    def _looked(self) -> _Rest:
        here = list(self._nodes.values())
        running = [found["pod"] for found in self.pods.objects.values() if found["pod"] is not None]
        zones = {node.name: node.zone for node in here}
        single = service_zones.single_zone_services(self.slices.objects.values(), zones)
        members = pod_requests.quorum_members(here, running)
        return _Rest(
            pod_requests.demand(here, running) if self.pods.connected else None,
            members.ready,
            members.size,
            single if self.slices.connected else (*single, NOT_READABLE),
            self._expired() if self.leases.connected else {},
        )

    def _expired(self) -> dict[str, float]:
        """Give the share of node leases in each zone that have not been renewed for as long as they last."""
        found: dict[str, list[bool]] = {}
        now = self._clock.monotonic()
        for key, lease in self.leases.objects.items():
            node, beat = self._nodes.get(key.name), self._beats.get(key.name)
            if beat is not None and node is not None and node.zone and node.counts:
                found.setdefault(node.zone, []).append(beat.silent_seconds(now) > heartbeats.lasts(lease))
        return {zone: round(sum(expired) / len(expired), 4) for zone, expired in sorted(found.items())}
