"""Carrier Karmada through the whole service: it writes bindings and taints, and Karmada does the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.alerts import body, firing, resolved
from tests.e2e.control_plane import ControlPlane
from tests.e2e.members import NAMESPACE
from tests.e2e.moving import GUARDS, knows, settled
from tests.e2e.service import Service
from tests.e2e.waiting import until

BORNE = 1
WORKLOADS = f"""
apiVersion: reactor/v1
sources:
- name: brownout
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: "cluster/{{service}}"
  onResolved: Healthy
rules:
- name: brownout
  kind: ClusterTaint
  mode: Enforce
  carrier: Karmada
  match: cluster/*
  signals: [brownout]
  taints: [{{key: reactor/brownout, effect: NoExecute}}]
- name: shop
  kind: WorkloadFailover
  mode: Enforce
  carrier: Karmada
  signals: [karmada]
  guards: {GUARDS}
"""
OWN = f"""
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, namespace: {NAMESPACE}}}]
  placement:
    clusterTolerations:
    - {{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: {BORNE}}}
    - {{key: reactor/brownout, operator: Exists, effect: NoExecute, tolerationSeconds: {BORNE}}}
    spreadConstraints: [{{spreadByField: cluster, minGroups: 2, maxGroups: 2}}]
    replicaScheduling: {{replicaSchedulingType: Duplicated}}
  failover: {{cluster: {{purgeMode: Gracefully, gracePeriodSeconds: 60}}}}
"""


OF_POLICIES = """
  policies: {selector: failover=reactor}
"""


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """Four members; web is bound to the first two, by a policy."""
    async with ControlPlane(tmp_path / "kubeconfig", ("member1", "member2", "member3", "member4")) as plane:
        plane.policy("web", yaml.safe_load(OWN), failover="reactor")
        plane.bind("web", member1=2, member2=2)
        yield plane


def reactor(plane: ControlPlane, folder: Path, rest: str) -> Service:
    """A reactor whose rule for workloads goes on like this."""
    return Service(folder / "reactor", rules=WORKLOADS + rest, settings={"clusters": plane.settings()})


@pytest.mark.parametrize("rest", [OWN, OF_POLICIES], ids=["of the rule", "of policies"])
async def test_a_member_that_is_not_ready_is_left_with_one_task_which_ends_when_the_new_copy_is_healthy(
    plane: ControlPlane, tmp_path: Path, rest: str
) -> None:
    async with reactor(plane, tmp_path, rest) as service:
        await knows(service, {"web": {"member1", "member2"}}, clusters=4, rule="shop")
        plane.ready("member1", "False")
        task = (await until(lambda: plane.tasks("web"), "the eviction is a task"))[0]
        kept = ("fromCluster", "purgeMode", "suppressDeletion", "replicas", "producer", "reason")
        assert [task[key] for key in kept] == [
            "member1", "Gracefully", True, 2, "alert-reactor", "TolerationElapsed"
        ]  # fmt: skip
        assert plane.clusters("web") == {"member2": 2, "member3": 2}
        await until(lambda: not plane.tasks("web"), "the task is ended")
        await settled(service, "web", rule="shop")
    assert plane.clusters("web") == {"member2": 2, "member3": 2}
    changed = [
        [operation["path"] for operation in write.body if operation["path"].startswith("/spec")]
        for write in plane.writes("resourcebindings")
    ]
    tasks = "/spec/gracefulEvictionTasks"
    assert changed == [["/spec/clusters", tasks], [tasks]], "placed and evicted in one write, ended in another"
    ended = next(i for i, state in enumerate(plane.history) if "member1" not in [*state["clusters"], *state["tasks"]])
    assert "member3" in plane.history[ended - 1]["healthy"], "the task ended before the new copy was healthy"


async def test_an_alert_puts_a_taint_on_a_cluster_that_workloads_leave_and_takes_it_off_again(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with reactor(plane, tmp_path, OWN) as service:
        await knows(service, {"web": {"member1", "member2"}}, clusters=4, rule="shop")
        assert await service.post(body(firing("member2")), to="brownout") == 200
        (taint,) = await until(lambda: plane.taints("member2"), "member2 is tainted")
        assert (taint["key"], taint["effect"]) == ("reactor/brownout", "NoExecute")
        assert taint["timeAdded"]
        await until(lambda: plane.clusters("web") == {"member1": 2, "member3": 2}, "web has left member2")
        await until(lambda: not plane.tasks("web"), "and is purged there")
        assert await service.post(body(resolved("member2")), to="brownout") == 200
        await until(lambda: not plane.taints("member2"), "the taint is taken off")
        await settled(service, "web", rule="shop")
    assert len(plane.writes("clusters")) == 2
    assert plane.clusters("web") == {"member1": 2, "member3": 2}, "what has moved stays where it is"
