"""docs/how-to/install-in-kubernetes.md, followed on a real API server: its files, and each of its commands in order.

Only the rule's seconds are shorter than on the page, and the cluster `west`, whose command comes last, is the same
server by another name. There is no kubelet: tests/kube/pods.py starts a process for each pod, with its ConfigMaps,
Secrets, ServiceAccount and user, and a root file system that is read-only; one of each Deployment, all servers of NATS.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.e2e.pages import ROOT, blocks, environment, files, section, shell
from tests.e2e.real_cluster import RealCluster, needs_one, real_cluster
from tests.e2e.waiting import until, until_told
from tests.kube import pods
from tests.kube.api import Api
from tests.kube.charts import helm, why_no_helm
from tests.kube.deployed import kubeconfig
from tests.kube.pods import Node, Pod

pytestmark = [
    needs_one,
    pytest.mark.skipif(bool(why_no_helm()), reason=why_no_helm()),
    pytest.mark.skipif(bool(pods.why_not()), reason=pods.why_not()),
]
PAGE = "how-to/install-in-kubernetes.md"
NAMESPACE = "reactor"
ROLES = ("receiver", "router", "observer", "decider", "executor")
SHORTER = {"tolerationSeconds: 10": "tolerationSeconds: 2", "recoverySeconds: 60": "recoverySeconds: 2"}
AWAY, HOME = {"checkout": 0, "checkout-west": 1}, {"checkout": 1, "checkout-west": 0}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@dataclass
class Installed:
    """A release, and the pods that it has made."""

    cluster: RealCluster
    api: Api
    node: Node
    folder: Path
    env: dict[str, str]

    async def follow(self, heading: str, *, west: bool = False) -> None:
        """Write the files of a section and run its commands, those for this cluster or those for `west`."""
        for name, text in [] if west else files(section(PAGE, heading)):
            for long, short in SHORTER.items():
                assert long in text
                text = text.replace(long, short)
            (self.folder / name).write_text(text)
        chosen = [one for one in blocks(section(PAGE, heading), "sh") if ("--context west" in one) is west]
        assert chosen, heading
        for block in chosen:
            await shell(block, self.folder, self.env)

    async def start(self) -> None:
        """Start what the StatefulSet, the Job and the Deployments ask for; the Job is run to its end."""
        [servers] = (await self.api.get(self.api.path("statefulsets", group="apps/v1"))).body["items"]
        spec = servers["spec"]["template"]["spec"]
        [claim] = servers["spec"]["volumeClaimTemplates"]
        spec["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
        names = [f"{servers['metadata']['name']}-{number}" for number in range(servers["spec"]["replicas"])]
        for name in names:
            self.node.names[f"{name}.reactor-nats-headless"] = self.node.address(name)
        for name in names:
            at = self.node.address(name)
            await self.node.start(name, spec, "-a", at, "--cluster", f"nats://{at}:6222")
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

    def reactors(self) -> list[Pod]:
        """The pods of the roles."""
        return [self.node.pods[f"reactor-{role}-0"] for role in ROLES]

    async def ready(self) -> None:
        """Wait until each Deployment's pod answers its readiness probe with 200."""
        async with aiohttp.ClientSession() as session:
            for pod in self.reactors():

                async def answers(at: str = pod.address) -> bool:
                    try:
                        async with session.get(f"http://{at}:8485/readyz") as answer:
                            return answer.status == 200
                    except aiohttp.ClientError:
                        return False

                try:
                    await until_told(answers, f"{pod.name} is ready")
                except AssertionError:
                    print(pod.log[-3000:])
                    raise

    async def rights(self, account: str, namespace: str) -> set[tuple[str, ...]]:
        """Give what the server lets a ServiceAccount do in a namespace, beyond what all may ask about themselves."""
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        server = replace(self.api.server, headers=self.api.server.headers | {"Impersonate-User": user})
        answer = await Api(self.api._session, server, namespace).post(REVIEWS, {"spec": {"namespace": namespace}})
        assert answer.code == 201, answer.body
        return {one for rule in answer.body["status"]["resourceRules"] for one in spread(rule) if "self" not in one[1]}

    async def granted(self) -> None:
        """Assert that each role may do what `reactor rbac` has printed for it, and nothing else."""
        grants = yaml.safe_load((self.folder / "rbac.yaml").read_text())["rbac"]["grants"]
        assert grants.keys() <= set(ROLES)
        for role in (*ROLES, "bus-init"):
            for namespace in ("shop", "default", NAMESPACE):
                here = [one for one in grants.get(role, []) if one["namespace"] in ("", namespace)]
                expected = {one for grant in here for rule in grant["rules"] for one in spread(rule)}
                assert await self.rights(f"reactor-{role}", namespace) == expected, (role, namespace)


def spread(rule: Any) -> Iterator[tuple[str, ...]]:
    """Give each group, resource, verb and name of a rule of RBAC; "": any name."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or [""]:
                    yield group, resource, verb, name


@asynccontextmanager
async def installed(tmp_path: Path) -> AsyncIterator[Installed]:
    """An API server, on which the page was followed up to its third section."""
    async with real_cluster(tmp_path / "local") as cluster:
        await cluster.shop()
        admin = kubeconfig(cluster.api.server, tmp_path / "admin.kubeconfig")
        known = yaml.safe_load(admin.read_text())
        known["contexts"].append({**known["contexts"][0], "name": "west"})
        admin.write_text(yaml.safe_dump(known))
        program = helm()
        assert program is not None
        env = environment(KUBECONFIG=str(admin))
        env["PATH"] = f"{program.parent}:{env['PATH']}"
        folder = tmp_path / "checkout"
        folder.mkdir()
        (folder / "deploy").symlink_to(ROOT / "deploy")
        api = Api(cluster.api._session, cluster.api.server, NAMESPACE)
        node = Node(api, cluster.control_plane.certificate, tmp_path / "pods")
        here = Installed(cluster, api, node, folder, env)
        for heading in ("1. Secrets", "2. Permissions for your rules", "3. Install"):
            await here.follow(heading)
        try:
            await here.start()
            yield here
        finally:
            await asyncio.to_thread(node.stop)


async def test_an_installed_chart_moves_traffic_and_takes_changed_rules_without_a_rollout(tmp_path: Path) -> None:
    async with installed(tmp_path) as here:
        await here.ready()
        await here.granted()
        running = [pod.process for name, pod in here.node.pods.items() if pod.process and "bus-init" not in name]
        before = await generations(here.api)
        await here.follow("4. Change rules")
        for pod in here.reactors():
            await here.node.mount(pod)  # what a kubelet does within a minute

        async def taken() -> bool:
            return all("the rules have changed" in pod.log for pod in here.reactors())

        await until_told(taken, "each process has taken the changed rules")
        assert await generations(here.api) == before, "a Deployment has changed: its pods would roll"
        assert [process.poll() for process in running] == [None] * (3 + len(ROLES))
        await here.ready()
        await here.granted()
        async with here.cluster.watched():
            await here.cluster.endpoints("checkout", ready=False)
            await until(here.cluster.history, "traffic moves")
            await here.cluster.endpoints("checkout", ready=True)
            await until(lambda: len(here.cluster.seen) > 1, "traffic comes home")
        assert here.cluster.history() == [AWAY, HOME]
        for pod in here.reactors():
            assert "forbidden" not in pod.log.lower(), f"{pod.name}: {pod.log[-3000:]}"

        rules = (here.folder / "shop.yaml").read_text().replace("cluster: local", "cluster: west")
        (here.folder / "shop.yaml").write_text(rules)
        west = {"kubeconfig": here.env["KUBECONFIG"], "context": "west"}
        (here.folder / "reactor.yaml").write_text(
            yaml.safe_dump({"clusters": {"west": west}, "ruleFiles": ["shop.yaml"]})
        )
        await here.follow("2. Permissions for your rules", west=True)


async def generations(api: Api) -> dict[str, int]:
    found = (await api.get(api.path("deployments", group="apps/v1"))).body["items"]
    assert {one["metadata"]["name"] for one in found} == {f"reactor-{role}" for role in ROLES}
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}
