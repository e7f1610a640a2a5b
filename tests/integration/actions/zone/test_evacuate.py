"""Pods leave a zone: as their budgets allow, in order, and by force only where the rule says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.demo.kube.writelog import LoggedWrite
from tests.integration.actions.zone.aws import Vpc
from tests.integration.actions.zone.scene import CrashingApi, Hurried, Reactor, budget, node, pod, volume


def reactor(api: KubeApi, **settings: Any) -> Reactor:
    return Reactor({"prod": api}, Hurried(), settings)


def asked(emulator: Emulator, *, code: int = 201) -> list[str]:
    return [write.name for write in _evictions(emulator) if write.code == code]


def _evictions(emulator: Emulator) -> list[LoggedWrite]:
    return [write for write in emulator.writes if write.subresource == "eviction"]


async def test_a_budget_is_respected_and_named_with_numbers(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    for number in range(3):
        east.create(pod(f"web-{number}", "a1"))
    east.create(budget("pdb", 2, app="web"))
    east.settle_budgets()
    us = reactor(api)
    outcome = await us.once(us.action("Evacuate"))
    assert (outcome.status, outcome.reason) == ("Failed", "InProgress")
    assert outcome.detail == ("2 pods are left in us-east-1a, 0 of them on their way out; 2 blocked by budget shop/pdb")


async def test_a_blocked_pod_is_asked_once_in_each_call(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    east.create(pod("web-0", "a1"))
    east.create(budget("pdb", 1, app="web"))
    east.settle_budgets()
    us = reactor(api)
    for _ in range(3):
        await us.once(us.action("Evacuate"))
    assert len(asked(emulator, code=429)) == 3
    east.delete("poddisruptionbudgets", "pdb", "shop")
    await us.until_done(us.action("Evacuate"))


async def test_a_pod_with_two_budgets_is_said_to_need_a_person(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    east.create(pod("web-0", "a1"))
    for name in ("one", "two"):
        east.create(budget(name, 0, app="web"))
    us = reactor(api)
    outcome = await us.once(us.action("Evacuate"))
    assert outcome.reason == "InProgress"
    assert "shop/web-0 has more than one disruption budget" in outcome.detail


async def test_low_priority_leaves_first_and_volumes_one_at_a_time(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    east.create(pod("vip", "a1", priority=1000))
    for number in range(2):
        east.create(pod(f"db-{number}", "a1", **volume(f"db-{number}"), finalizers=["test/slow"]))
    east.create(pod("cheap", "a1", priority=-5))
    us = reactor(api, maxParallel=1)
    action = us.action("Evacuate")
    await us.once(action)
    first = asked(emulator)
    assert (sorted(first[:2]), first[2:]) == (["cheap", "db-0"], ["vip"])  # two go at once: one with, one without
    east.patch("pods", "db-0", {"metadata": {"finalizers": None}}, "shop")  # now its volume is free
    await us.once(action)
    assert asked(emulator) == [*first, "db-1"]


async def test_a_pod_of_the_same_name_elsewhere_is_not_taken_for_the_one_that_left(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    east.create(pod("db-0", "a1"))

    class Replaced(CrashingApi):
        async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
            east.delete("pods", "db-0", "shop")
            east.create(pod("db-0", "b1"))
            return await super().create(path, body)

    us = reactor(Replaced(api))
    assert (await us.once(us.action("Evacuate"))).status == "Done"
    assert (east.get("pods", "db-0", "shop")["spec"]["nodeName"], asked(emulator)) == ("b1", [])


async def test_when_the_time_is_over_nothing_is_forced_unless_the_rule_says_so(
    east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    east.create(pod("web-0", "a1"))
    east.create(budget("pdb", 1, app="web"))
    east.settle_budgets()
    polite, strict = reactor(api, timeoutSeconds=900), reactor(api, timeoutSeconds=900, force="AfterTimeout")
    action = polite.action("Evacuate")
    polite.clock.forward(901)
    outcome = await polite.once(action)
    assert (outcome.reason, len(east.list("pods"))) == ("InProgress", 1)
    assert "the rule says force: Never" in outcome.detail
    action = strict.action("Evacuate")
    strict.clock.forward(880)
    assert ((await strict.once(action)).reason, len(east.list("pods"))) == ("InProgress", 1)
    strict.clock.forward(30)
    assert ((await strict.once(action)).status, east.list("pods")) == ("Done", [])


async def test_pods_of_a_node_that_is_gone_for_five_minutes_are_deleted(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    us = reactor(api)
    now = us.clock.now()
    east.create(node("a1", ready=False, since=now - timedelta(seconds=299)))
    east.create(pod("web-0", "a1"))
    east.create(budget("pdb", 1, app="web"))
    east.settle_budgets()
    action = us.action("Evacuate")
    us.clock.forward(-15)
    assert (await us.once(action)).reason == "InProgress"
    us.clock.forward(20)
    assert (await us.once(action)).status == "Done"
    assert (asked(emulator), len(asked(emulator, code=429))) == ([], 1)  # refused when asked, then deleted


async def hanging(east: EmulatedCluster, us: Reactor) -> None:
    """A node that is gone, and a pod that hangs on it: no kubelet says that it has ended."""
    east.create(node("a1", ready=False, since=us.clock.now() - timedelta(hours=1)))
    east.create(pod("db-0", "a1", **volume("db-0"), finalizers=["test/hangs"]))


def out(east: EmulatedCluster) -> list[Any]:
    taints = east.get("nodes", "a1")["spec"].get("taints", [])
    return [taint for taint in taints if taint["key"] == "node.kubernetes.io/out-of-service"]


async def test_a_node_is_out_of_service_only_when_its_network_is_proven_to_be_cut(
    east: EmulatedCluster, api: KubeApi, vpc: Vpc
) -> None:
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = Reactor({"prod": api}, Hurried(), {"force": "AfterTimeout", "network": network}, ec2=vpc.boto)
    await hanging(east, us)
    action = us.action("Evacuate")
    us.clock.forward(901)
    await us.once(action)
    assert out(east) == []
    await us.failover(["CutNetwork"])
    await us.once(action)
    assert out(east) == [{"key": "node.kubernetes.io/out-of-service", "value": "isolated-zone", "effect": "NoExecute"}]
    await us.until_done(us.action("Evacuate", undo=True))
    assert out(east) == []


async def test_a_policy_is_no_proof(east: EmulatedCluster, api: KubeApi) -> None:
    us = reactor(api, force="AfterTimeout", network={"provider": "LabelledNetworkPolicy"})
    await hanging(east, us)
    action = us.action("Evacuate")
    us.clock.forward(901)
    assert (await us.once(action)).reason == "InProgress"
    assert out(east) == []


async def test_before_the_time_is_over_no_node_is_out_of_service(east: EmulatedCluster, api: KubeApi, vpc: Vpc) -> None:
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = Reactor({"prod": api}, Hurried(), {"force": "AfterTimeout", "network": network}, ec2=vpc.boto)
    await hanging(east, us)
    await us.failover(["CutNetwork"])
    await us.once(us.action("Evacuate"))
    assert out(east) == []
