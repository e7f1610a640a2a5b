"""A cluster of three zones with what lives in one: nodes with leases, workloads with budgets, and who looks after them.

The kubelets, the workload and disruption controllers and the node controller are played, a step every TICK, with the
rules that matter here: a lease is renewed while its node is well, a pod on a node that is not Ready is not Ready, a pod
that went comes again on a healthy node that takes pods, and budgets are counted late.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from reactor.demo.kube import EmulatedCluster, Emulator, JsonObject, LoggedWrite
from reactor.runtime.clock import Clock
from tests.e2e import zone_objects
from tests.e2e.zone_objects import ZONE_LABEL, ZONES, Workload

SICK = "eu-1a"
NODES = 4
"""In each zone."""
LAME = "a4"
"""A node of the sick zone that stays Ready: on it budgets count for something."""
TICK = 0.25
READY_AFTER = 0.75
"""Seconds from a pod's creation until it is Ready."""
BUDGETS_EVERY = 0.5
"""Seconds between two counts of the disruption controller."""
LEASE_SECONDS = 8
BALANCER_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
MANAGER = "alert-reactor"


WEB = Workload("web", "ReplicaSet", 9, budget=7)
WORKLOADS = (
    WEB,
    Workload("db", "StatefulSet", 3, budget=2, claim=True),
    Workload("batch", "Job", 2),
)
PLACED = {
    "web": ("a1", "a4", "a4", "b1", "b2", "b3", "c1", "c2", "c3"), "db": ("a2", "b4", "c4"), "batch": ("a3", "b1"),
}  # fmt: skip
"""Nodes of the pods at first."""


class ZoneWorld:
    """Cluster `prod`."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.prod: EmulatedCluster = emulator.cluster("prod")
        self._down: set[str] = set()
        self._born: dict[str, float] = {}
        self._count = Counter[str]()
        self._ticks = 0
        for zone in ZONES:
            for number in range(1, NODES + 1):
                self.join(f"{zone[-1]}{number}", zone)
        # What others have done before must be so afterwards.
        self.prod.patch("nodes", "a2", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
        self.prod.patch("nodes", "a3", {"spec": {"unschedulable": True}})
        self.prod.patch("nodes", LAME, {"metadata": {"labels": {BALANCER_LABEL: "theirs"}}})
        for workload in WORKLOADS:
            for node in PLACED[workload.name]:
                self._run(workload, node, ready=True)
            if workload.budget is not None:
                self.prod.create(zone_objects.budget(workload))
        self.prod.settle_budgets()

    def join(self, name: str, zone: str) -> None:
        """Let a node join, with its lease and its DaemonSet's pod."""
        self.prod.create(zone_objects.node(name, zone))
        lease = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": zone_objects.stamp()}
        metadata = {"name": name, "namespace": "kube-node-lease"}
        self.prod.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": lease})
        self.prod.create(zone_objects.pod(f"log-{name}", name, "log", "DaemonSet", ready=True))

    def run_on(self, node: str) -> str:
        """Put one more pod of `web` on a node, as one that had been bound before the node was fenced."""
        return self._run(WEB, node, ready=True)

    def keep_web(self, least: int | None) -> None:
        """Change the budget of `web`: with all of its replicas, no pod of it may leave the sick zone."""
        self.prod.patch("poddisruptionbudgets", WEB.name, {"spec": {"minAvailable": least}}, "shop")
        self.prod.settle_budgets()

    def serve(self, service: str, *nodes: str) -> None:
        """Let a service have ready endpoints on these nodes only."""
        endpoints = [
            {"addresses": [f"10.0.0.{number}"], "conditions": {"ready": True}, "nodeName": node}
            for number, node in enumerate(nodes, start=1)
        ]
        labels = {"kubernetes.io/service-name": service}
        metadata = {"name": f"{service}-1", "namespace": "shop", "labels": labels}
        self.prod.create(
            {
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
                "addressType": "IPv4", "endpoints": endpoints, "ports": [],
            }
        )  # fmt: skip

    def fail(self, *, but: Iterable[str] = (LAME,)) -> None:
        """Let the sick zone's nodes go silent: NotReady, and their leases run out."""
        self._down = set(self.nodes(SICK)) - set(but)
        for node in sorted(self._down):
            self._says(node, "Unknown")

    def mend(self) -> None:
        """Let them come back."""
        back, self._down = self._down, set()
        for node in sorted(back):
            self._says(node, "True")

    def _says(self, node: str, ready: str) -> None:
        self.prod.set_condition("nodes", node, kind="Ready", status=ready)
        for pod in self.pods(node):
            metadata = pod["metadata"]
            status = "True" if ready == "True" else "False"
            self.prod.set_condition("pods", metadata["name"], metadata["namespace"], kind="Ready", status=status)

    def nodes(self, zone: str) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.prod.list("nodes", labels=f"{ZONE_LABEL}={zone}"))

    def pods(self, *nodes: str) -> list[JsonObject]:
        """The pods on these nodes, DaemonSets' too."""
        return [pod for pod in self.prod.list("pods") if pod["spec"]["nodeName"] in nodes]

    def movable(self, zone: str = SICK) -> list[str]:
        """The pods of a zone that have to leave it."""
        return [
            one["metadata"]["name"] for one in self.pods(*self.nodes(zone)) if one["metadata"]["labels"]["app"] != "log"
        ]

    def picture(self) -> dict[str, Any]:
        """All that an isolation may change on nodes, without versions and times."""
        return {
            one["metadata"]["name"]: (
                one["metadata"].get("labels"), one["metadata"].get("annotations") or {}, one.get("spec") or {}
            )
            for one in self.prod.list("nodes")
        }  # fmt: skip

    def writes(self) -> list[LoggedWrite]:
        """Writes of the reactor, in the cluster's order."""
        return self.emulator.writes.effective(cluster="prod", manager=MANAGER)

    async def live(self) -> None:
        """Play all other controllers and users until cancelled."""
        while True:
            await asyncio.sleep(TICK)
            self._ticks += 1
            if self._ticks % round(1 / TICK) == 0:
                self._renew()
            self._replace()
            if self._ticks % round(BUDGETS_EVERY / TICK) == 0:
                self.prod.settle_budgets()

    def _renew(self) -> None:
        for lease in self.prod.list("leases", "kube-node-lease"):
            if (name := lease["metadata"]["name"]) not in self._down:
                self.prod.patch("leases", name, {"spec": {"renewTime": zone_objects.stamp()}}, "kube-node-lease")

    def _replace(self) -> None:
        now = self.prod.monotonic()
        pods = self.prod.list("pods", "shop")
        for pod in pods:
            name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
            if node not in self._down and now - self._born.get(name, now) >= READY_AFTER:
                del self._born[name]
                self.prod.patch("pods", name, {"status": {"phase": "Running"}}, "shop", status=True)
                self.prod.set_condition("pods", name, "shop", kind="Ready", status="True")
        there = Counter(pod["metadata"]["labels"]["app"] for pod in pods)
        for workload in WORKLOADS:
            for _ in range(workload.replicas - there[workload.name]):
                self._run(workload, self._emptiest(pods), ready=False)
                pods = self.prod.list("pods", "shop")

    def _emptiest(self, pods: Iterable[JsonObject]) -> str:
        """The scheduler: a Ready node without a cordon and without taints, with the fewest pods."""
        load = Counter(pod["spec"]["nodeName"] for pod in pods)
        fit = [
            node["metadata"]["name"]
            for node in self.prod.list("nodes")
            if node["metadata"]["name"] not in self._down
            and not node.get("spec", {}).get("unschedulable")
            and not node.get("spec", {}).get("taints")
        ]
        return min(map(str, fit), key=lambda name: (load[name], name))

    def _run(self, workload: Workload, node: str, *, ready: bool) -> str:
        """A StatefulSet's pod has the name of the one that went, the others get new ones."""
        name = f"{workload.name}-{self._count[workload.name]}"
        if workload.kind == "StatefulSet":
            names = (f"{workload.name}-{number}" for number in range(workload.replicas))
            name = next(str(one) for one in names if self.prod.find("pods", one, "shop") is None)
        self._count[workload.name] += 1
        self.prod.create(zone_objects.pod(name, node, workload.name, workload.kind, ready=ready, claim=workload.claim))
        if not ready:
            self._born[name] = self.prod.monotonic()
        return name


@asynccontextmanager
async def inhabited() -> AsyncIterator[ZoneWorld]:
    """The cluster, alive while the block runs."""
    async with Emulator(clock=Clock().now) as emulator:
        world = ZoneWorld(emulator)
        living = asyncio.create_task(world.live())
        try:
            yield world
        finally:
            living.cancel()
            (ended,) = await asyncio.gather(living, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), ended
