"""A real API server of a test's own, with a namespace `shop`, and us as what no kubelet and no controller is here for.

The reactor reaches it as the ServiceAccount of deploy/, with the rights of the parts that the test names. What it wrote
is known from a watch, which is the server's own account.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from reactor.demo.kube.crds import shipped
from tests.e2e.members import NAMESPACE, application
from tests.kube.api import Api, Events
from tests.kube.deployed import Deployed, settled
from tests.kube.envtest import EnvTest, why_not

SPLITS, SLICES, APPS = "split.smi-spec.io/v1alpha2", "discovery.k8s.io/v1", "apps/v1"
KUBELET_SECONDS = 0.2
PLURALS = {
    "ConfigMap": "configmaps", "Secret": "secrets", "ServiceAccount": "serviceaccounts",
    "PersistentVolumeClaim": "persistentvolumeclaims", "Deployment": "deployments",
}  # fmt: skip

needs_one = pytest.mark.skipif(bool(why_not()), reason=f"no real API server here: {why_not()}")


@dataclass
class RealCluster:
    """One server, and who works on it."""

    api: Api
    us: Deployed
    control_plane: EnvTest
    kubeconfig: Path
    seen: list[tuple[float, Mapping[str, int]]] = field(default_factory=list)
    """Time and weights of each write to a TrafficSplit that a watch reported."""

    async def shop(self) -> None:
        """Make the shop of the pages: two Services with ready endpoints, and a TrafficSplit between them."""
        for service in ("checkout", "checkout-west"):
            await self.endpoints(service, ready=True)
        await self.split("checkout", "checkout-west")

    async def split(self, *services: str) -> None:
        """Make a TrafficSplit of the name of its primary, which has all the traffic."""
        backends = [{"service": one, "weight": int(one == services[0])} for one in services]
        made = await self.api.post(
            self.api.path("trafficsplits", group=SPLITS),
            {
                "apiVersion": SPLITS, "kind": "TrafficSplit",
                "metadata": {"name": services[0], "labels": {"team": "shop"}},
                "spec": {"service": f"{services[0]}-apex", "backends": backends},
            },
        )  # fmt: skip
        assert made.code == 201, made.body

    async def serves(self) -> bool:
        """True if it answers for the kinds that tests change: after a start each has to be read from etcd
        first (429)."""
        kinds = (("trafficsplits", SPLITS), ("endpointslices", SLICES))
        answers = [await self.api.get(self.api.path(plural, group=group)) for plural, group in kinds]
        return all(one.code == 200 for one in answers)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Note each change of a TrafficSplit from now on."""
        path = self.api.path("trafficsplits", group=SPLITS)
        query = {"resourceVersion": (await self.api.get(path)).version, "timeoutSeconds": 600}
        async with self.api.watch(path, **query) as events:
            noting = asyncio.create_task(self._note(events))
            try:
                yield
            finally:
                noting.cancel()
                with suppress(asyncio.CancelledError):
                    await noting

    async def _note(self, events: Events) -> None:
        while True:
            try:
                event = await events.next()
            except TimeoutError:
                continue  # nothing has changed for a while
            if event is None:
                return
            assert event["type"] == "MODIFIED", event
            weights = {one["service"]: one["weight"] for one in event["object"]["spec"]["backends"]}
            self.seen.append((asyncio.get_running_loop().time(), weights))

    def history(self) -> list[Mapping[str, int]]:
        """The weights after each change."""
        return [weights for _, weights in self.seen]

    async def endpoints(self, service: str, *, ready: bool) -> float:
        """Let a Service have two endpoints, ready or not, as its controller would say. Gives when that was."""
        name = f"{service}-1"
        conditions = {"ready": ready, "serving": ready, "terminating": False}
        body = {
            "apiVersion": SLICES, "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": [f"10.0.0.{last}"], "conditions": conditions} for last in (1, 2)],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }  # fmt: skip
        done = await self.api.apply(self.api.path("endpointslices", name, SLICES), body, "controller", force=True)
        assert done.code in (200, 201), done.body
        return asyncio.get_running_loop().time()

    async def run(self, name: str) -> None:
        """Let an application run here, with all that it needs."""
        for one in application(name):
            group = one["apiVersion"] if "/" in one["apiVersion"] else ""
            made = await self.api.post(self.api.path(PLURALS[one["kind"]], group=group), one)
            assert made.code == 201, made.body

    async def has(self, name: str) -> set[str]:
        """Kinds of an application's objects that exist here."""
        found = set()
        for one in application(name):
            group = one["apiVersion"] if "/" in one["apiVersion"] else ""
            path = self.api.path(PLURALS[one["kind"]], one["metadata"]["name"], group)
            if (await self.api.get(path)).code == 200:
                found.add(one["kind"])
        return found

    async def deployment(self, name: str) -> Any:
        """Give a Deployment; None: it is not there."""
        found = await self.api.get(self.api.path("deployments", name, APPS))
        return found.body if found.code == 200 else None

    async def live(self) -> None:
        """Let every Deployment's status follow its spec, until cancelled."""
        while True:
            for one in (await self.api.get(self.api.path("deployments", group=APPS))).body["items"]:
                metadata, wanted = one["metadata"], one["spec"]["replicas"]
                status = {
                    "observedGeneration": metadata["generation"], "replicas": wanted, "updatedReplicas": wanted,
                    "availableReplicas": wanted, "readyReplicas": wanted,
                }  # fmt: skip
                if any(one["status"].get(key, 0) != value for key, value in status.items()):
                    path = self.api.path("deployments", metadata["name"], APPS, subresource="status")
                    await self.api.patch(path, {"status": status})
            await asyncio.sleep(KUBELET_SECONDS)


@asynccontextmanager
async def real_cluster(folder: Path, *parts: str) -> AsyncIterator[RealCluster]:
    """Start one, and give the reactor the rights of these parts of deploy/."""
    folder.mkdir(parents=True, exist_ok=True)
    control_plane = EnvTest()
    try:
        server = await asyncio.to_thread(control_plane.start)
        async with aiohttp.ClientSession() as session:
            api = Api(session, replace(server), NAMESPACE)
            made = await api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            assert made.code == 201, made.body
            us = await settled(api, folder)
            await us.define(*shipped())
            await us.grant(*parts)
            yield RealCluster(api, us, control_plane, await us.kubeconfig())
    finally:
        control_plane.stop()
