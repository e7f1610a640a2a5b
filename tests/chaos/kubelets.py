"""Kubelets of a run's two clusters: the status of each Deployment follows its spec, and the script."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from reactor.audit.spans import Span
from reactor.demo.kube import EmulatedCluster, Emulator
from tests.chaos.script import Plan
from tests.chaos.workloads import CLUSTERS, NAMESPACE
from tests.judge.workload_history import CopyWrite

TICK = 0.1
STARTS = 1.0
"""Seconds from when a kubelet first sees a copy until its pods can be available."""

Place = tuple[str, str]
"""A cluster, and a Deployment."""


class Kubelets:
    """Let the status of each Deployment follow its spec, and remember when it was bad."""

    def __init__(self, emulator: Emulator) -> None:
        """Copies that are there already run."""
        self._clusters = [emulator.cluster(name) for name in CLUSTERS]
        self.crashing: set[Place] = set()
        """Places at which a copy has no healthy pod, or would have none."""
        self._started = {
            one["metadata"]["uid"]: -inf for cluster in self._clusters for one in cluster.list("deployments", NAMESPACE)
        }
        self._changes: dict[Place, list[tuple[float, bool]]] = {}
        """Times at which the status of a copy there turned good, or bad."""

    def turn(self, plan: Plan, service: str, *, healthy: bool) -> None:
        """Set the health of its copy on the first cluster, or on the second, which the script has as a secondary."""
        place = (CLUSTERS[0] if service == plan.name else CLUSTERS[1], plan.name)
        (self.crashing.discard if healthy else self.crashing.add)(place)
        self.look()

    async def live(self) -> None:
        """Look at every tick, without end."""
        while True:
            self.look()
            await asyncio.sleep(TICK)

    def look(self) -> None:
        """Write each status that is not as it should be."""
        for cluster in self._clusters:
            for one in cluster.list("deployments", NAMESPACE):
                self._status(cluster, one)

    def _status(self, cluster: EmulatedCluster, one: dict[str, Any]) -> None:
        now, metadata, wanted = asyncio.get_running_loop().time(), one["metadata"], one["spec"].get("replicas", 1)
        place = (cluster.name, metadata["name"])
        runs = now - self._started.setdefault(metadata["uid"], now) >= STARTS
        good = runs and place not in self.crashing
        available = wanted if good else 0
        status = {
            "observedGeneration": metadata["generation"], "replicas": wanted, "updatedReplicas": wanted,
            "availableReplicas": available, "readyReplicas": available, "unavailableReplicas": wanted - available,
        }  # fmt: skip
        if one.get("status") != status:
            cluster.patch("deployments", metadata["name"], {"status": status}, NAMESPACE, status=True)
            self._changes.setdefault(place, []).append((now, good))

    def outages(self, plan: Plan, writes: Sequence[CopyWrite]) -> Mapping[str, tuple[Span, ...]]:
        """Give when its copies were bad on each cluster, new ones from when they were placed."""
        return {name: tuple(self._bad((name, plan.name), writes)) for name in CLUSTERS}

    def _bad(self, place: Place, writes: Sequence[CopyWrite]) -> Iterator[Span]:
        changes = self._changes.get(place, [])
        begun = [at for at, good in changes if not good]
        begun += [write.at for write in writes if write.effect == "place" and write.cluster == place[0]]
        for begin in begun:
            yield Span(begin, next((at for at, good in changes if good and at >= begin), inf))
