"""The emulated control plane, as contract tests ask it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_port import JsonObject
from reactor.settings.server_settings import ClusterSettings
from tests.e2e.control_plane import ControlPlane
from tests.karmada.planes import MEMBERS, NAMESPACE, Plane, State, Timeline, tasks_of, wanted_of


class Emulated(Plane):
    """ControlPlane, with a timeline."""

    kind = "sim"

    def __init__(self, running: ControlPlane, folder: Path) -> None:
        super().__init__()
        self._running = running
        self.kubeconfig = folder / "kubeconfig"
        self._away: set[str] = set()

    async def deploy(self, name: str, placement: JsonObject, on: Mapping[str, int], replicas: int) -> None:
        self._running.policy(name, {"resourceSelectors": [], "placement": placement})
        self._running.bind(name, replicas, None, **on)
        self.timelines[name] = Timeline()
        await self.healthy(name, *on)
        assert await self.answered(name) == {**on}

    async def change(self, name: str, spec: JsonObject) -> None:
        self._running.cluster.patch("resourcebindings", f"{name}-deployment", {"spec": spec}, NAMESPACE)

    async def taints(self, member: str, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        self._running.cluster.patch("clusters", member, {"spec": {"taints": taints}})

    async def located(self, member: str, region: str = "", zone: str = "") -> None:
        spec = {"region": region, "zones": [zone] if zone else None}
        self._running.cluster.patch("clusters", member, {"spec": spec})

    async def reachable(self, member: str, *, yes: bool) -> None:
        self._away = self._away - {member} if yes else self._away | {member}
        self._running.ready(member, "True" if yes else "False")

    def sick(self, member: str, name: str, *, yes: bool = True) -> None:
        key = (f"{name}-deployment", member)
        self._running.sick = self._running.sick | {key} if yes else self._running.sick - {key}

    async def scheduler(self, *, runs: bool) -> None:
        self._running.scheduler.silent = not runs

    async def note(self) -> None:
        """Note each state of the members' copies."""
        while True:
            for name, timeline in self.timelines.items():
                found = self._running.cluster.get("resourcebindings", f"{name}-deployment", NAMESPACE)
                told = (found.get("status") or {}).get("aggregatedStatus") or []
                ready = {one["clusterName"] for one in told if one["health"] == "Healthy"} - self._away
                timeline.note(State(wanted_of(found), tuple(tasks_of(found)), frozenset(ready)))
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def emulated(folder: Path) -> AsyncIterator[Plane]:
    """Start one."""
    async with ControlPlane(folder / "kubeconfig", MEMBERS) as running:
        plane = Emulated(running, folder)
        clusters = Clusters({"karmada": ClusterSettings.model_validate(running.settings()["karmada"])})
        plane.api = await clusters.get("karmada")
        noting = asyncio.create_task(plane.note())
        try:
            yield plane
            plane.tell()
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)
            await clusters.close()
