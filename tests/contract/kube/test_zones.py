"""Requests that the isolation of a zone relies on, on every API server there is: taint patches, eviction, admission."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from reactor.actions.zone.holds import BALANCERS, OUT, fence_by
from reactor.actions.zone.origin import ORIGIN_NOTES, IsolationOrigin
from tests.contract.kube.objects import config_map, pod
from tests.kube.api import JSON_PATCH, PATIENCE, Api

ROOT = Path(__file__).resolve().parents[3]
COMPONENTS = ROOT / "deploy/kustomize/components"
POLICY = COMPONENTS / "zone-isolation/admission-policy.yaml"
ISOLATIONS = COMPONENTS / "zone-isolation-gardener/subnetisolations-crd.yaml"
MARK = "use1-az6"
FENCE = fence_by(IsolationOrigin("prod-zones", "ann"))
ZONE = "topology.kubernetes.io/zone"


async def _node(kube: Api, **spec: Any) -> str:
    """Make a node that no kubelet is behind, named after this test's namespace."""
    name = f"node-{kube.namespace}"
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {ZONE: "a"}}, "spec": spec}
    made = await kube.post("/api/v1/nodes", body)
    assert made.code == 201, made.body
    return f"/api/v1/nodes/{name}"


def _ours(node: Any) -> list[str]:
    """The taints that the test knows of: a node without a kubelet soon has others too, where controllers run."""
    keys = {taint["key"] for taint in node["spec"].get("taints", [])}
    return sorted(keys & {"gpu", "reactor/isolated-zone"})


async def test_fencing_adds_one_taint_and_takes_one_away(kube: Api) -> None:
    path = await _node(kube, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    try:
        async with asyncio.timeout(PATIENCE):
            while True:  # where controllers run they write to the node too: a patch on old news is refused
                node = (await kube.get(path)).body
                fenced = await kube.patch(path, FENCE.take(node, MARK), JSON_PATCH)
                if fenced.code == 200:
                    break
                assert fenced.code in (409, 422), fenced.body
        assert _ours(fenced.body) == ["gpu", "reactor/isolated-zone"]
        assert fenced.body["metadata"]["annotations"]["reactor/isolated-by"] == "prod-zones"
        assert fenced.body["metadata"]["annotations"]["reactor/isolated-by-hand"] == "ann"
        assert fenced.body["spec"]["unschedulable"] is True
        for hold in (BALANCERS, OUT):
            node = (await kube.get(path)).body
            done = await kube.patch(path, hold.take(node, MARK), JSON_PATCH)
            assert done.code == 200, done.body
        for hold in (OUT, BALANCERS, FENCE):
            node = (await kube.get(path)).body
            done = await kube.patch(path, hold.give(node), JSON_PATCH)
            assert done.code == 200, done.body
        assert _ours(done.body) == ["gpu"]
        assert not {*ORIGIN_NOTES} & {*(done.body["metadata"].get("annotations") or {})}
        assert not done.body["spec"].get("unschedulable")
        assert done.body["metadata"]["labels"].get("node.kubernetes.io/exclude-from-external-load-balancers") is None
    finally:
        await kube.delete(path)


async def test_a_fence_on_old_news_is_refused(kube: Api) -> None:
    path = await _node(kube)
    try:
        node = (await kube.get(path)).body
        other = [{"op": "add", "path": "/spec/taints", "value": [{"key": "gpu", "effect": "NoSchedule"}]}]
        assert (await kube.patch(path, other, JSON_PATCH)).code == 200
        refused = await kube.patch(path, FENCE.take(node, MARK), JSON_PATCH)
        assert refused.code == 422
        assert (await kube.get(path)).body["spec"]["taints"][0]["key"] == "gpu"
    finally:
        await kube.delete(path)


async def test_the_eviction_that_we_send_is_one_that_discovery_names(kube: Api) -> None:
    served = (await kube.get("/api/v1")).body["resources"]
    eviction = next(one for one in served if one["name"] == "pods/eviction")
    await kube.post(kube.path("pods"), pod("web-0", app="web"))
    body = {"apiVersion": f"policy/{eviction['version']}", "kind": "Eviction", "metadata": {"name": "web-0"}}
    done = await kube.post(kube.path("pods", "web-0", subresource="eviction"), body)
    assert done.code == 201, done.body


async def test_pods_are_found_by_their_node(kube: Api) -> None:
    for name, on in (("here", "n1"), ("there", "n2")):
        body = pod(name)
        body["spec"]["nodeName"] = f"{on}-{kube.namespace}"
        await kube.post(kube.path("pods"), body)
    found = await kube.get("/api/v1/pods", fieldSelector=f"spec.nodeName=n1-{kube.namespace}")
    assert [one["metadata"]["name"] for one in found.body["items"]] == ["here"]


async def test_a_zone_that_is_isolated_may_not_be_changed_for_another(kube: Api) -> None:
    if kube.server.sim is not None:
        pytest.skip("the emulator has no admission policies: this test needs a real API server of 1.30 or newer")
    policy, binding = yaml.safe_load_all(POLICY.read_text())
    # A copy of the test's own, so that tests on one server never meet.
    name = f"reactor-{kube.namespace}"
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    binding["spec"]["matchResources"] = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kube.namespace}}
    }
    base = "/apis/admissionregistration.k8s.io/v1"
    made = [
        await kube.post(f"{base}/validatingadmissionpolicies", policy),
        await kube.post(f"{base}/validatingadmissionpolicybindings", binding),
    ]
    assert [one.code for one in made] == [201, 201], made
    try:
        record = config_map("record")
        record["metadata"]["annotations"] = {"reactor/isolated-zone": "use1-az6"}
        await kube.post(kube.path("configmaps"), record)
        path = kube.path("configmaps", "record")

        async def put(zone: str | None, **data: str) -> int:
            note = {"metadata": {"annotations": {"reactor/isolated-zone": zone}}, "data": data}
            return (await kube.patch(path, note)).code

        async with asyncio.timeout(PATIENCE):
            while await put("use1-az1") != 403:  # a policy is in force some moments after it was made
                assert await put(None) == 200
                assert await put("use1-az6") == 200
                await asyncio.sleep(0.2)
        assert await put("use1-az6", note="the same value is no change") == 200
        assert await put(None) == 200
        assert await put("use1-az1") == 200
    finally:
        await kube.delete(f"{base}/validatingadmissionpolicybindings/{name}")
        await kube.delete(f"{base}/validatingadmissionpolicies/{name}")


async def test_a_subnet_isolation_keeps_its_status(kube: Api) -> None:
    definition = yaml.safe_load(ISOLATIONS.read_text())
    definition["spec"]["group"] = group = f"{kube.namespace}.example.com"
    definition["metadata"]["name"] = f"subnetisolations.{group}"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = await kube.post(crds, definition)
    assert made.code == 201, made.body
    try:
        path = kube.path("subnetisolations", group=f"{group}/v1alpha1")
        async with asyncio.timeout(PATIENCE):
            while (await kube.get(path)).code != 200:
                await asyncio.sleep(0.05)
        body = {
            "apiVersion": f"{group}/v1alpha1", "kind": "SubnetIsolation",
            "metadata": {"name": "isolate-use1-az6"}, "spec": {"isolatedZoneID": "use1-az6"},
        }  # fmt: skip
        assert (await kube.post(path, body)).code == 201
        operation = {
            "type": "Create", "state": "Succeeded", "progress": 100, "description": "cut",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        status = {"lastOperation": operation, "providerStatus": {"isolatedZoneCode": "us-east-1a", "aclID": "acl-1"}}
        add = [{"op": "add", "path": "/status", "value": status}]
        said = await kube.patch(f"{path}/isolate-use1-az6/status", add, JSON_PATCH)
        assert (said.code, said.body["status"]) == (200, status), said.body
        wrong = [{"op": "replace", "path": "/status/lastOperation/state", "value": "Perhaps"}]
        assert (await kube.patch(f"{path}/isolate-use1-az6/status", wrong, JSON_PATCH)).code == 422
    finally:
        await kube.delete(f"{crds}/{definition['metadata']['name']}")
