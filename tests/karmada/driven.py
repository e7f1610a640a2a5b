"""A real Karmada, as contract tests ask it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_port import JsonObject
from reactor.settings.server_settings import ClusterSettings
from tests.karmada.kubelets import MERGE, Kubelets
from tests.karmada.planes import BINDINGS, CLUSTERS, MEMBERS, NAMESPACE, Plane, State, Timeline, tasks_of, wanted_of
from tests.karmada.real import Karmada

POLICIES = f"/apis/policy.karmada.io/v1alpha1/namespaces/{NAMESPACE}/propagationpolicies"


class Driven(Plane):
    """A running Karmada, with a timeline."""

    kind = "real"

    def __init__(self, karmada: Karmada) -> None:
        super().__init__()
        self.karmada = karmada
        self.kubeconfig = karmada.plane.kubeconfig
        self.kubelets = Kubelets(karmada.members, self._changed)
        self._bindings: dict[str, JsonObject] = {}
        self._away: set[str] = set()

    async def deploy(self, name: str, placement: JsonObject, on: Mapping[str, int], replicas: int) -> None:
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        policy: JsonObject = {
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "resourceSelectors": [selector],
                "placement": {**placement, "clusterAffinity": {"clusterNames": [*on]}},
            },
        }  # fmt: skip
        await self._apply(policy)
        labels = {"app": name}
        container = {"name": "c", "image": "registry.invalid/none"}
        await self._apply(
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {
                    "replicas": replicas, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            }
        )  # fmt: skip
        self.timelines[name] = Timeline()
        await self.until(lambda: self._bound(name), f"{name} has a binding")
        await self.healthy(name, *on)
        policy["spec"]["placement"] = {"clusterAffinity": {"clusterNames": [*MEMBERS]}, **placement}
        await self._apply(policy)
        assert await self.answered(name) == {**on}
        await self.healthy(name, *on)

    async def _bound(self, name: str) -> bool:
        return any(one["metadata"]["name"] == f"{name}-deployment" for one in await self.api.list(BINDINGS))

    async def change(self, name: str, spec: JsonObject) -> None:
        await self._request("PATCH", f"{BINDINGS}/{name}-deployment", {"spec": spec}, MERGE)

    async def taints(self, member: str, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        await self._request("PATCH", f"{CLUSTERS}/{member}", {"spec": {"taints": taints}}, MERGE)

    async def located(self, member: str, region: str = "", zone: str = "") -> None:
        spec = {"region": region, "zones": [zone] if zone else None}
        await self._request("PATCH", f"{CLUSTERS}/{member}", {"spec": spec}, MERGE)

    async def reachable(self, member: str, *, yes: bool) -> None:
        if yes:
            await asyncio.to_thread(self.karmada.members[member].restart)
            self._away.discard(member)
        else:
            self._away.add(member)
            self.karmada.members[member].kill()

        async def known() -> bool:
            return await asyncio.to_thread(self.karmada.ready, member) is yes

        await self.until(known, f"{member} is {'' if yes else 'not '}Ready")

    def sick(self, member: str, name: str, *, yes: bool = True) -> None:
        key = (member, name)
        self.kubelets.sick = self.kubelets.sick | {key} if yes else self.kubelets.sick - {key}

    async def scheduler(self, *, runs: bool) -> None:
        if runs:
            self.karmada.scheduler()
        else:
            self.karmada.end("scheduler")

    async def _apply(self, obj: JsonObject) -> Any:
        return await asyncio.to_thread(self.karmada.apply, obj)

    async def _request(self, *words: Any) -> Any:
        return await asyncio.to_thread(self.karmada.plane.request, *words)

    def _changed(self) -> None:
        for name, timeline in self.timelines.items():
            binding = self._bindings.get(f"{name}-deployment")
            if binding is not None:
                ready = frozenset(self.kubelets.ready(name) - self._away)
                timeline.note(State(wanted_of(binding), tuple(tasks_of(binding)), ready))

    async def note(self) -> None:
        """Note what the bindings want, each time that they are read."""
        while True:
            self._bindings = {one["metadata"]["name"]: one for one in await self.api.list(BINDINGS)}
            self._changed()
            await asyncio.sleep(0.02)

    async def clear(self) -> None:
        """Take all workloads and taints away, and let everything run."""
        for member in [*self._away]:
            await self.reachable(member, yes=True)
        for member in MEMBERS:
            await self.taints(member)
            await self.located(member)
        # One after the other: a policy whose workload is gone is tried again by Karmada, later and later. Bindings by
        # hand: what would collect what has no owner is a controller of Kubernetes' own.
        for path in (POLICIES, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", BINDINGS):
            await self._request("DELETE", path)
            await self.until(lambda path=path: self._none(path), f"{path} is empty")  # type: ignore[misc]
        self.timelines.clear()
        self.kubelets.sick.clear()

        # A member that was away gets its orders later and later, too.
        for server in self.karmada.members.values():
            path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
            if any(self.kubelets.found.values()):
                await asyncio.to_thread(server.request, "DELETE", path)

        async def none() -> bool:
            return not any(self.kubelets.found.values())

        await self.until(none, "all copies are gone")

    async def _none(self, path: str) -> bool:
        return not await self.api.list(path)


@contextlib.asynccontextmanager
async def driven(karmada: Karmada) -> AsyncIterator[Driven]:
    """Use a running Karmada for one test, and leave it as it was."""
    plane = Driven(karmada)
    await plane._apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    clusters = Clusters({"karmada": ClusterSettings(kubeconfig=karmada.plane.kubeconfig)})
    plane.api = await clusters.get("karmada")
    async with plane.kubelets:
        noting = asyncio.create_task(plane.note())
        try:
            yield plane
            plane.tell()
            await plane.clear()
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)
            await clusters.close()
