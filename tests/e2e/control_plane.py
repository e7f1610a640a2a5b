"""A Karmada control plane: bindings, member clusters and, as far as it matters here, what Karmada does with them."""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reactor.actions.karmada.tasks import copies
from reactor.demo.kube import WORLD, Emulator, JsonObject, LoggedWrite, write_kubeconfig
from reactor.demo.kube.crds import load_definitions
from reactor.runtime.clock import Clock
from tests.e2e.members import NAMESPACE, TICK
from tests.karmada.scheduler import Scheduler

DEFINITIONS = Path(__file__).parents[1] / "data" / "karmada" / "definitions.yaml"
READY_SECONDS = 0.5
"""Seconds until a copy is Healthy in a member."""


class ControlPlane:
    """`async with ControlPlane(folder, {"member1": …})`: Cluster objects that are ready, and an agent at work.

    The agent collects the status of each copy where `spec.clusters` or a task wants one, and a scheduler answers each
    change as Karmada's does. It is no graceful eviction controller: who ends a task is what the tests ask.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self.names = names
        self.emulator = Emulator(clock=Clock().now)
        self.cluster = self.emulator.cluster("karmada", crds=[*load_definitions([DEFINITIONS])])
        self.scheduler = Scheduler(self.cluster)
        self.sick: set[tuple[str, str]] = set()
        """Binding and member: copies that do not become healthy."""
        self._folder = folder
        self._since: dict[tuple[str, str], float] = {}
        self._agent: asyncio.Task[None] | None = None
        self.history: list[Mapping[str, Any]] = []
        """States of the binding, each once, in order: `clusters`, `tasks` and `healthy`."""

    async def __aenter__(self) -> Self:
        await self.emulator.__aenter__()
        self.cluster.ensure_namespace(NAMESPACE)
        for name in self.names:
            self.cluster.create(
                {
                    "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
                    "spec": {"syncMode": "Push"}, "status": {"conditions": []},
                }
            )  # fmt: skip
            self.ready(name, "True")
        self._agent = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._agent is not None:
            self._agent.cancel()
            await asyncio.gather(self._agent, return_exceptions=True)
        await self.emulator.close()

    def settings(self) -> dict[str, Any]:
        """Entry of the reactor's settings for it."""
        return {"karmada": {"kubeconfig": str(write_kubeconfig(self._folder, self.emulator)), "context": "karmada"}}

    def ready(self, name: str, status: str) -> None:
        """Set a member's Ready condition."""
        self.cluster.set_condition("clusters", name, kind="Ready", status=status, reason="Test")

    def policy(self, name: str, spec: Mapping[str, Any], **labels: str) -> None:
        """Let there be a PropagationPolicy."""
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
        self.cluster.create(
            {
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": metadata,
                "spec": dict(spec),
            }
        )  # fmt: skip

    def bind(self, name: str, replicas: int = 2, over: Mapping[str, Any] | None = None, **clusters: int) -> None:
        """Let a Deployment be bound to these clusters, with their replicas, by the policy of its name.

        `over`: a placement of its own.
        """
        policies = self.cluster.list("propagationpolicies", NAMESPACE)
        placement: JsonObject = next(
            (one["spec"]["placement"] for one in policies if one["metadata"]["name"] == name), {}
        )
        by = {f"propagationpolicy.karmada.io/{key}": text for key, text in (("namespace", NAMESPACE), ("name", name))}
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": name, "uid": "u-1"}
        listed = [{"name": cluster, "replicas": count} for cluster, count in clusters.items()]
        self.cluster.create(
            {
                "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
                "metadata": {"name": f"{name}-deployment", "namespace": NAMESPACE, "annotations": by},
                "spec": {
                    "resource": resource, "replicas": replicas, "clusters": listed,
                    "placement": {**placement, **(over or {})},
                },
            }
        )  # fmt: skip

    def clusters(self, name: str) -> dict[str, int]:
        """Replicas by cluster that the binding wants."""
        return {one["name"]: one["replicas"] for one in self._spec(name).get("clusters") or []}

    def tasks(self, name: str) -> list[JsonObject]:
        """Its evictions."""
        return [*(self._spec(name).get("gracefulEvictionTasks") or [])]

    def taints(self, name: str) -> list[JsonObject]:
        """Of a Cluster object."""
        return [*(self.cluster.get("clusters", name)["spec"].get("taints") or [])]

    def writes(self, resource: str) -> list[LoggedWrite]:
        """Writes of the reactor, in order."""
        return [write for write in self.emulator.writes.effective(resource) if write.manager != WORLD]

    def _spec(self, name: str) -> JsonObject:
        spec: JsonObject = self.cluster.get("resourcebindings", f"{name}-deployment", NAMESPACE)["spec"]
        return spec

    async def _work(self) -> None:
        while True:
            self.scheduler.work()
            for binding in self.cluster.list("resourcebindings", NAMESPACE):
                self._collect(binding)
            await asyncio.sleep(TICK)

    def _collect(self, binding: JsonObject) -> None:
        name, spec, now = binding["metadata"]["name"], binding["spec"], get_running_loop().time()
        clusters = [one["name"] for one in spec.get("clusters") or []]
        tasks = [one["fromCluster"] for one in spec.get("gracefulEvictionTasks") or []]
        there = sorted(copies(spec))
        for key in [key for key in self._since if key[0] == name and key[1] not in there]:
            del self._since[key]
        aged = [one for one in there if now - self._since.setdefault((name, one), now) >= READY_SECONDS]
        healthy = [one for one in aged if (name, one) not in self.sick]
        items = [
            {"clusterName": one, "applied": True, "health": "Healthy" if one in healthy else "Unhealthy"}
            for one in there
        ]
        if (binding.get("status") or {}).get("aggregatedStatus") != items:
            status = {"status": {"aggregatedStatus": items}}
            self.cluster.patch("resourcebindings", name, status, NAMESPACE, status=True)
        state = {"clusters": clusters, "tasks": tasks, "healthy": healthy}
        if not self.history or self.history[-1] != state:
            self.history.append(state)
