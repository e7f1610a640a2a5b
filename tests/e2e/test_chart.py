"""The chart, as its page says to install it: helm on a real API server, and pods from what then stands there.

There is no kubelet: tests/kube/pods.py starts a process for each pod, with its ConfigMaps, Secrets, ServiceAccount and
user, and a root file system that is read-only.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.real_cluster import RealCluster, needs_one, real_cluster
from tests.e2e.waiting import until, until_told
from tests.kube import pods
from tests.kube.api import Api
from tests.kube.charts import CHART, helm, why_no_helm
from tests.kube.deployed import kubeconfig
from tests.kube.pods import REACTOR, Node

pytestmark = [
    needs_one,
    pytest.mark.skipif(bool(why_no_helm()), reason=why_no_helm()),
    pytest.mark.skipif(bool(pods.why_not()), reason=pods.why_not()),
]
NAMESPACE = "reactor"
ROLES = ("receiver", "router", "observer", "decider", "executor")
USERS = ("reactor", *ROLES, "viewer", "operator", "zones")
TOLERATION = 2
RULES = f"""apiVersion: reactor/v1
sources:
  - {{name: ends, kind: EndpointsWatch, cluster: local, namespace: shop}}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {{cluster: local, kind: TrafficSplit, namespace: shop, name: checkout}}
    tolerationSeconds: {TOLERATION}
    recoverySeconds: 2
"""
AWAY, HOME = {"checkout": 0, "checkout-b": 1}, {"checkout": 1, "checkout-b": 0}


async def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Run one command of the page; what it printed is shown if it fails."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        env=os.environ | (env or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    return printed


@dataclass
class Installed:
    """A release, and the pods that it has made."""

    cluster: RealCluster
    api: Api
    node: Node
    folder: Path
    admin: Path

    async def helm(self, *values: str | Path) -> None:
        program = helm()
        assert program is not None
        words = ["upgrade", "--install", "reactor", CHART, "-n", NAMESPACE, "--kubeconfig", self.admin, *values]
        print(await run(program, *words))

    async def pods(self) -> None:
        """Start what the StatefulSet, the Job and the Deployments ask for, one of each; the Job is run to its end."""
        headless = f"{self.node.address('reactor-nats-0')}"
        self.node.names["reactor-nats-0.reactor-nats-headless"] = headless
        for one in (await self.api.get(self.api.path("statefulsets", group="apps/v1"))).body["items"]:
            spec = one["spec"]["template"]["spec"]
            [claim] = one["spec"]["volumeClaimTemplates"]
            spec["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
            await self.node.start("reactor-nats-0", spec, "-a", headless)
        for one in (await self.api.get(self.api.path("jobs", group="batch/v1"))).body["items"]:
            await self._job(one["metadata"]["name"], one["spec"]["template"]["spec"])
        for one in (await self.api.get(self.api.path("deployments", group="apps/v1"))).body["items"]:
            await self.node.start(f"{one['metadata']['name']}-0", one["spec"]["template"]["spec"])

    async def _job(self, name: str, spec: Any) -> None:
        for attempt in range(30):  # backoffLimit
            pod = await self.node.start(f"{name}-{attempt}", spec)
            assert pod.process is not None
            if await asyncio.to_thread(pod.process.wait) == 0:
                return
            await asyncio.sleep(0.5)  # the Job's controller waits longer
        raise AssertionError(pod.log)

    async def ready(self) -> None:
        """Wait until each Deployment's pod answers its readiness probe with 200."""
        async with aiohttp.ClientSession() as session:
            for name, pod in self.node.pods.items():
                if "nats" in name or "bus-init" in name:
                    continue

                async def answers(at: str = pod.address) -> bool:
                    try:
                        async with session.get(f"http://{at}:8485/readyz") as answer:
                            return answer.status == 200
                    except aiohttp.ClientError:
                        return False

                try:
                    await until_told(answers, f"{name} is ready")
                except AssertionError:
                    print(pod.log[-3000:])
                    raise


@asynccontextmanager
async def installed(tmp_path: Path, *values: str | Path) -> AsyncIterator[Installed]:
    """An API server, on which every command of docs/how-to/install-in-kubernetes.md was run in its order."""
    async with real_cluster(tmp_path / "local") as cluster:
        for service in ("checkout", "checkout-b"):
            await cluster.endpoints(service, ready=True)
        await cluster.split("checkout", "checkout-b")
        server, admin = cluster.api.server, tmp_path / "admin.kubeconfig"
        kubeconfig(server, admin)
        kubectl = ["kubectl", "--kubeconfig", str(admin), "-n", NAMESPACE]
        await run(*kubectl, "create", "namespace", NAMESPACE)
        passwords = [f"--from-literal={user}=p{secrets.token_hex(32)}" for user in USERS]
        await run(*kubectl, "create", "secret", "generic", "reactor-bus", *passwords)
        token = f"--from-literal=webhook_token={secrets.token_hex(32)}"
        await run(*kubectl, "create", "secret", "generic", "reactor-webhook", token)
        (tmp_path / "shop.yaml").write_text(RULES)
        printed = await run(
            *REACTOR, "rbac", tmp_path / "shop.yaml", "--cluster", "local", "-o", "helm",
        )  # fmt: skip
        (tmp_path / "rbac.yaml").write_text(printed)
        api = Api(cluster.api._session, server, NAMESPACE)
        certificate = cluster.control_plane.certificate
        node = Node(api, certificate, tmp_path / "pods")
        here = Installed(cluster, api, node, tmp_path, admin)
        await here.helm(
            "-f", tmp_path / "rbac.yaml", "--set-file", f"rules.shop\\.yaml={tmp_path / 'shop.yaml'}", *values
        )
        try:
            await here.pods()
            yield here
        finally:
            await asyncio.to_thread(node.stop)


async def test_an_installed_chart_moves_traffic_and_takes_changed_rules_without_a_rollout(tmp_path: Path) -> None:
    values = ("--set", "nats.config.cluster.enabled=false")
    async with installed(tmp_path, *values) as here:
        await here.ready()
        async with here.cluster.watched():
            await here.cluster.endpoints("checkout", ready=False)
            await until(here.cluster.history, "traffic moves")
            assert here.cluster.history()[0] == AWAY
        running = [pod.process for name, pod in here.node.pods.items() if pod.process and "bus-init" not in name]
        before = await generations(here.api)
        text = RULES.replace("recoverySeconds: 2", "recoverySeconds: 3")
        (tmp_path / "shop.yaml").write_text(text)
        words = ("-f", tmp_path / "rbac.yaml", "--set-file", f"rules.shop\\.yaml={tmp_path / 'shop.yaml'}")
        await here.helm(*words, *values)
        for pod in here.node.pods.values():
            if "nats" not in pod.name and "bus-init" not in pod.name:
                await here.node.mount(pod)  # what a kubelet does within a minute

        async def taken() -> bool:
            return all(
                "the rules have changed" in pod.log
                for name, pod in here.node.pods.items()
                if "nats" not in name and "bus-init" not in name
            )

        await until_told(taken, "each process has taken the changed rules")
        assert await generations(here.api) == before, "a Deployment has changed: its pods would roll"
        assert [process.poll() for process in running] == [None] * (1 + len(ROLES))
        await here.ready()
        async with here.cluster.watched():
            await here.cluster.endpoints("checkout", ready=True)
            await until(lambda: len(here.cluster.seen) > 1, "traffic comes home")
        assert here.cluster.history() == [AWAY, HOME]


async def generations(api: Api) -> dict[str, int]:
    found = (await api.get(api.path("deployments", group="apps/v1"))).body["items"]
    assert {one["metadata"]["name"] for one in found} == {f"reactor-{role}" for role in ROLES}
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}
