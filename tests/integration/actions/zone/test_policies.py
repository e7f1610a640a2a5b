"""LabelledNetworkPolicy: what it reaches, and that it says what it does not."""

from __future__ import annotations

from typing import Any

from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster
from tests.integration.actions.zone.scene import Hurried, Reactor, node, pod


def reactor(api: KubeApi) -> Reactor:
    return Reactor({"prod": api}, Hurried(), {"network": {"provider": "LabelledNetworkPolicy"}})


def policy(east: EmulatedCluster, name: str = "reactor-isolated-use1-az6") -> Any:
    return east.get("networkpolicies", name, "shop")["spec"]


async def test_only_pods_of_the_zone_are_denied(east: EmulatedCluster, api: KubeApi) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    east.create(pod("here", "a1", labels={}))
    east.create(pod("host", "a1", hostNetwork=True, labels={}))
    east.create(pod("system", "a1", namespace="kube-system", labels={}))
    east.create(pod("there", "b1", labels={}))
    await reactor(api).failover(["CutNetwork"])
    labelled = {one["metadata"]["name"] for one in east.list("pods", labels="reactor/isolated-zone=use1-az6")}
    assert labelled == {"here"}
    assert policy(east) == {
        "podSelector": {"matchLabels": {"reactor/isolated-zone": "use1-az6"}}, "policyTypes": ["Ingress", "Egress"]
    }  # fmt: skip
    assert east.list("networkpolicies", "kube-system") == []


async def test_policies_that_still_allow_are_named(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    east.create(pod("here", "a1"))
    metadata = {"name": "allow-web", "namespace": "shop"}
    spec: dict[str, Any] = {"podSelector": {}, "ingress": [{}]}
    east.create({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec})
    us = reactor(api)
    outcome = await us.once(us.action("CutNetwork"))
    words = "1 pods of us-east-1a are denied by policy; pods of the host network are not"
    assert outcome.status == "Done"
    assert outcome.detail == f"{words}; these policies may still allow: shop/allow-web"


async def test_a_pod_that_starts_later_is_labelled_when_it_is_asked_again(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api)
    await us.failover(["CutNetwork"])
    east.create(pod("late", "a1", owner="DaemonSet"))
    await us.failover(["CutNetwork"])
    assert east.get("pods", "late", "shop")["metadata"]["labels"]["reactor/isolated-zone"] == "use1-az6"
