"""Karmada control planes of contract tests, the emulated one and a real one, and the timeline of a workload."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.runtime.clock import Clock

NAMESPACE = "shop"
PATIENCE = 60.0
BINDINGS = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
MEMBERS = ("m1", "m2", "m3")


@dataclass(frozen=True)
class State:
    """State of a workload."""

    wanted: Mapping[str, int]
    tasks: tuple[str, ...]
    ready: frozenset[str]

    def __str__(self) -> str:
        return f"clusters={dict(self.wanted)} tasks={[*self.tasks]} ready={sorted(self.ready)}"


@dataclass
class Timeline:
    """States of one workload, each once."""

    states: list[tuple[float, State]] = field(default_factory=list)

    def note(self, state: State) -> None:
        """Note a state that differs from the last one."""
        if not self.states or self.states[-1][1] != state:
            self.states.append((Clock().now().timestamp(), state))

    def outages(self, since: float) -> list[str]:
        """The moments from then on at which no copy was Ready."""
        return [self._line(at, state) for at, state in self.states if at >= since and not state.ready]

    def __str__(self) -> str:
        return "\n".join(self._line(at, state) for at, state in self.states)

    @staticmethod
    def _line(at: float, state: State) -> str:
        return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03d} {state}"


class Plane(ABC):
    """One control plane with the members m1, m2 and m3."""

    kind: str
    kubeconfig: Path
    api: KubeApi

    def __init__(self) -> None:
        self.timelines: dict[str, Timeline] = {}

    @abstractmethod
    async def deploy(self, name: str, placement: JsonObject, on: Mapping[str, int], replicas: int) -> None:
        """Let there be a Deployment under a policy with this placement, its copies where asked, and Healthy."""

    @abstractmethod
    async def change(self, name: str, spec: JsonObject) -> None:
        """Change the spec of its binding, as another writer."""

    @abstractmethod
    async def taints(self, member: str, *keys: str) -> None:
        """Let these be the NoExecute taints of a cluster."""

    @abstractmethod
    async def located(self, member: str, region: str = "", zone: str = "") -> None:
        """Let a cluster be there."""

    @abstractmethod
    async def reachable(self, member: str, *, yes: bool) -> None:
        """Cut a member off, or let it be back, and wait until the control plane knows."""

    @abstractmethod
    def sick(self, member: str, name: str, *, yes: bool = True) -> None:
        """Let a copy be unready, or ready again."""

    @abstractmethod
    async def scheduler(self, *, runs: bool) -> None:
        """Stop the scheduler, or start it."""

    async def binding(self, name: str) -> JsonObject:
        """Read a Deployment's binding."""
        return await self.api.get(f"{BINDINGS}/{name}-deployment")

    async def where(self, name: str) -> dict[str, int]:
        """Replicas by cluster that its binding wants."""
        return wanted_of(await self.binding(name))

    async def tasks(self, name: str) -> list[str]:
        """Clusters with eviction tasks."""
        return tasks_of(await self.binding(name))

    async def answered(self, name: str) -> dict[str, int]:
        """Wait until the scheduler has answered and nothing follows, and give where the binding wants its copies."""

        async def quiet() -> bool:
            before = await self.binding(name)
            await asyncio.sleep(0.5)
            after = await self.binding(name)
            return bool(before["metadata"]["generation"] == after["metadata"]["generation"])

        await self.until(quiet, f"the scheduler has answered for {name}", name)
        return await self.where(name)

    async def until(self, true: Callable[[], Awaitable[object]], what: str, name: str = "") -> None:
        """Wait for it, and print the timeline where it does not come."""
        ends = asyncio.get_running_loop().time() + PATIENCE
        while not await true():
            if asyncio.get_running_loop().time() > ends:
                raise AssertionError(f"not in time: {what}\n{self.timelines.get(name, '')}")
            await asyncio.sleep(0.05)

    async def healthy(self, name: str, *members: str) -> None:
        """Wait until Karmada finds exactly these copies Healthy."""

        async def so() -> bool:
            told = (await self.binding(name)).get("status", {}).get("aggregatedStatus") or []
            return {one["clusterName"] for one in told if one.get("health") == "Healthy"} == {*members}

        await self.until(so, f"{name} is Healthy on {members}", name)

    def never_out(self, name: str, since: float) -> None:
        """Check that at each moment since then a copy was Ready; its timeline is told where none was."""
        timeline = self.timelines[name]
        assert not timeline.outages(since), f"no copy of {name} was Ready:\n{timeline}"

    def tell(self) -> None:
        """Print what became of each workload, for a test that has failed."""
        for name, timeline in self.timelines.items():
            print(f"{name}:\n{timeline}")


def wanted_of(binding: JsonObject) -> dict[str, int]:
    """Read `spec.clusters`."""
    return {one["name"]: one.get("replicas", 0) for one in binding["spec"].get("clusters") or []}


def tasks_of(binding: JsonObject) -> list[str]:
    """Read `spec.gracefulEvictionTasks`."""
    return [one["fromCluster"] for one in binding["spec"].get("gracefulEvictionTasks") or []]
