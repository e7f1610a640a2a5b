"""Permissions that `reactor rbac` prints, on a real server: each role may do what its rules need there, and nothing
else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli
from reactor.demo.kube.crds import shipped
from tests.kube.api import PATIENCE
from tests.kube.deployed import RBAC, Deployed

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ROLES = ("receiver", "router", "observer", "decider", "executor")
RULES = """apiVersion: reactor/v1
sources:
  - {name: ends, kind: EndpointsWatch, cluster: it, namespace: NAMESPACE}
  - {name: work, kind: WorkloadWatch, cluster: it, namespace: NAMESPACE}
  - {name: nodes, kind: NodeWatch, cluster: it}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: it, kind: TrafficSplit, namespace: NAMESPACE, name: checkout}
    recoverySeconds: 60
  - name: web
    kind: WorkloadFailover
    mode: Enforce
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: NAMESPACE, name: web}]
    propagateDeps: true
    placement: {clusterAffinity: {clusterNames: [it]}}
    failover: {cluster: {purgeMode: Gracefully}}
  - name: zones
    kind: ZoneIsolation
    mode: Enforce
    cluster: it
    zones: [{name: z-a, id: a}, {name: z-b, id: b}]
    steps: [Fence, ShiftTraffic, Evacuate, CutNetwork, Verify]
    network: {provider: LabelledNetworkPolicy}
    tolerationSeconds: 300
"""
Flat = set[tuple[str, str, str, str]]


def flat(rules: list[Any]) -> Flat:
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


async def applied(us: Deployed, documents: list[Any]) -> None:
    plurals = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
    for one in documents:
        kind, namespace = one["kind"], one["metadata"].get("namespace")
        if kind == "ServiceAccount":
            collection = us.admin.path("serviceaccounts")
        elif namespace is None:
            collection = f"{RBAC}/{plurals[kind]}"
        else:
            collection = f"{RBAC}/namespaces/{namespace}/{plurals.get(kind, 'rolebindings')}"
        made = await us.admin.post(collection, one)
        assert made.code == 201, made.body
        us.made.append(f"{collection}/{one['metadata']['name']}")


async def may(us: Deployed, account: str, namespace: str) -> Flat:
    """Permissions of this ServiceAccount in a namespace by the server's answer, without questions about itself."""
    user = f"system:serviceaccount:{us.admin.namespace}:{account}"
    impersonated = {"Impersonate-User": user, "Impersonate-Group": "system:authenticated"}
    body = {"spec": {"namespace": namespace}}
    headers = us.admin.server.headers | impersonated
    asked = us.admin._session.post(us.admin.server.url + REVIEWS, json=body, headers=headers, ssl=us.admin.server.tls)
    async with asked as answer:
        status = (await answer.json())["status"]
    assert not status["incomplete"], status
    own = {"authorization.k8s.io", "authentication.k8s.io"}
    return {one for one in flat(status["resourceRules"]) if one[0] not in own}


async def test_each_role_may_do_what_its_rules_need_and_nothing_else(us: Deployed, tmp_path: Path) -> None:
    if us.admin.server.tier == "existing":
        pytest.skip("a cluster in use may give every account more")
    await us.define(*shipped())
    namespace, prefix = us.admin.namespace, f"printed-{us.admin.namespace}"
    rules, config = tmp_path / "rules.yaml", tmp_path / "reactor.yaml"
    rules.write_text(RULES.replace("NAMESPACE", namespace))
    config.write_text(yaml.safe_dump({"clusters": {"it": {"kubeconfig": str(await us.kubeconfig())}}}))
    words = ["rbac", str(rules), "-c", str(config), "--cluster", "it", "--namespace", namespace, "--name", prefix]
    printed = await asyncio.to_thread(CliRunner().invoke, cli, words)
    assert printed.exit_code == 0, printed.output
    # The namespace that kubelets' Leases are in is made by a controller, which is not here.
    await us.admin.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
    documents = [one for one in yaml.safe_load_all(printed.output) if one]
    await applied(us, documents)
    expected: dict[tuple[str, str], Flat] = {}
    for one in documents:
        if one["kind"] in ("Role", "ClusterRole"):
            key = one["metadata"]["name"].removeprefix(f"{prefix}-"), one["metadata"].get("namespace", "")
            expected[key] = flat(one["rules"])
    assert {role for role, _ in expected} == {"observer", "executor"}
    async with asyncio.timeout(PATIENCE):  # the server knows of a binding some moments after it was made
        for role, there in expected:
            wanted = expected[role, there] | expected.get((role, ""), set())
            while not wanted <= await may(us, f"{prefix}-{role}", there or namespace):
                await asyncio.sleep(0.05)
    for role in ROLES:
        for there in (namespace, "default", "kube-system", "kube-node-lease"):
            wanted = expected.get((role, there), set()) | expected.get((role, ""), set())
            assert await may(us, f"{prefix}-{role}", there) == wanted, f"{role} in {there}"


async def test_check_against_finds_nothing_missing_with_what_is_printed(us: Deployed, tmp_path: Path) -> None:
    await us.define(*shipped())
    namespace = us.admin.namespace
    rules, config = tmp_path / "rules.yaml", tmp_path / "reactor.yaml"
    rules.write_text(RULES.replace("NAMESPACE", namespace))
    config.write_text(yaml.safe_dump({"clusters": {"it": {"kubeconfig": str(await us.kubeconfig())}}}))

    async def missing() -> list[str]:
        words = ["check", str(rules), "--against", "-c", str(config), "-o", "json"]
        done = await asyncio.to_thread(CliRunner().invoke, cli, words)
        return [one["message"] for one in yaml.safe_load(done.stdout) if " may not " in one["message"]]

    assert len(await missing()) > 10
    words = ["rbac", str(rules), "-c", str(config), "--cluster", "it", "--namespace", namespace, "--single"]
    printed = await asyncio.to_thread(CliRunner().invoke, cli, words)
    await us.admin.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
    documents = [one for one in yaml.safe_load_all(printed.output) if one and one["kind"] != "ServiceAccount"]
    await applied(us, documents)
    async with asyncio.timeout(PATIENCE):
        while left := await missing():
            print(left)
            await asyncio.sleep(0.1)
