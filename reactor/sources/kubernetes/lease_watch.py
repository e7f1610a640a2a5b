"""LeaseWatch: a target whose Lease is renewed is Healthy, one whose Lease has fallen silent is Unknown.

    - {name: heartbeats, kind: LeaseWatch, cluster: karmada}   # namespace: karmada-cluster, target: cluster/{name}

A renewal that we saw is the only proof: timestamps are those of another clock, and a Lease that is merely there may be
years old. More than `graceSeconds` without one is Unknown; one that was never seen renewed has `startupGraceSeconds`.
While the watch is lost nothing is said, and that time is no silence of theirs. A Lease that is deleted says nothing
any more, and its target is Unknown after `staleSeconds`. Several Leases of one target: the worst speaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bus.messages import Health
from reactor.clients.changes import ChangeType, ObjectChange, ObjectKey, ReadInterval, key_of, strings_of
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.sources.aggregator import TargetAggregator
from reactor.sources.kubernetes.endpoints_watch import collection
from reactor.sources.kubernetes.heartbeats import Heartbeats, mark, project
from reactor.sources.publisher import HealthPublisher
from reactor.sources.source_context import SourceContext
from rules.kinds.cluster_health import heartbeat
from rules.rulefile.sources import LeaseWatch

LEASES = "/apis/coordination.k8s.io/v1"


async def run(source: LeaseWatch, world: SourceContext) -> None:
    """Watch until cancelled."""
    await LeaseWatcher(source, world, await world.clusters.get(source.cluster)).run()


@dataclass(slots=True)
class _Lease:
    """Labels of one Lease, from which its target is made, and the health that was last published."""

    labels: dict[str, str]
    said: Health | None = None


class LeaseWatcher:
    """The Leases of one namespace."""

    def __init__(self, source: LeaseWatch, world: SourceContext, api: WatchApi) -> None:
        self._source = source
        self._clock = world.clock
        self._known: dict[ObjectKey, _Lease] = {}
        self._beats = Heartbeats(world.clock.monotonic(), look_seconds=source.monitor_seconds)
        self.publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
        self._requests = world.requests
        # A silence that is shorter than the grace is not seen; so no look is needed for so long.
        self.aggregator: TargetAggregator[ObjectKey] = TargetAggregator(
            self.publisher,
            world.clock,
            lambda key: self.leases.seen_of(key),
            lambda key: self.leases.proven_of(key),
            doubted=lambda key: key in self.leases.doubted,
            resolution_seconds=source.grace_seconds,
        )
        self.leases = Reflector(
            api, collection(LEASES, "leases", source.namespace), self._changed, clock=world.clock, project=project,
            # A watch that is dead and does not know it has to be found out before its silence is taken for theirs.
            idle_seconds=source.grace_seconds / 2,
        )  # fmt: skip

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.leases.run())
            group.create_task(self.aggregator.keep(self.leases.look_again, self._requests))
            group.create_task(self._monitor())

    async def _changed(self, changes: Sequence[ObjectChange]) -> None:
        for kind, found, _ in changes:
            key = key_of(found)
            if key is None:
                continue
            if kind is ChangeType.DELETED:
                self._beats.gone(key)
                self._known.pop(key, None)
                self.aggregator.forget(key)
                continue
            labels = {**strings_of(found["metadata"]["labels"]), "cluster": self._source.cluster, **key._asdict()}
            lease = self._known.setdefault(key, _Lease(labels))
            lease.labels = labels
            beat = self._beats.seen(key, mark(found), self._clock.monotonic())
            if beat.last_beat is not None:
                self._note(key, lease, self.leases.look, Health.HEALTHY, "its Lease is renewed")
        await self.aggregator.speak()

    async def _monitor(self) -> None:
        while True:
            await self._clock.sleep(self._source.monitor_seconds)
            now = self._clock.monotonic()
            self._beats.look(now, listening=self.leases.connected)
            found = self._clock.now()
            look = ReadInterval(self.leases.proven or found, found)
            for key, beat in self._beats:
                lease = self._known[key]
                status = heartbeat(
                    lease.said, first_seen=beat.first_seen, last_beat=beat.last_beat, now=now,
                    grace_seconds=self._source.grace_seconds, startup_grace_seconds=self._source.startup_grace_seconds,
                )  # fmt: skip
                if status is Health.UNKNOWN:
                    silent = beat.silent_seconds(now)
                    self._note(key, lease, look, status, f"no renewal of its Lease seen for {silent:.0f} s")
            await self.aggregator.speak()

    def _note(self, key: ObjectKey, lease: _Lease, look: ReadInterval, status: Health, detail: str) -> None:
        lease.said = status
        self.aggregator.note(key, status, labels=lease.labels, look=look, detail=detail)
