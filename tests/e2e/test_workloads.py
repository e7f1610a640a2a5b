"""Workloads leave clusters that fail them, with all that they need, through the whole service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bus.jetstream import JetStreamBus
from bus.topology import TEMPLATES
from rules.group import Group
from tests.e2e.members import NAMESPACE, Members
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

CLUSTER_SECONDS = 1.0
"""How long a cluster that does not answer is borne, by its probe and then by the workloads' tolerations."""


def sources(names: Sequence[str]) -> str:
    """Probes and watches of these clusters, as quick as they can be."""
    return "".join(
        f"""
- {{name: api-{name}, kind: ClusterProbe, cluster: {name}, everySeconds: 2, failureSeconds: {CLUSTER_SECONDS:g},
   successSeconds: {CLUSTER_SECONDS:g}, refreshSeconds: 5}}
- {{name: copies-{name}, kind: WorkloadWatch, cluster: {name}, namespace: {NAMESPACE}, kinds: [Deployment],
   refreshSeconds: 5}}"""
        for name in names
    )


def rule(name: str, *, count: int, failover: str, guards: str = "{ratePerSecond: 100}", more: str = "") -> str:
    """A rule for one Deployment, with full copies on so many clusters."""
    tolerations = "".join(
        f"\n    - {{key: cluster.karmada.io/{key}, operator: Exists, effect: NoExecute, "
        f"tolerationSeconds: {CLUSTER_SECONDS:g}}}"
        for key in ("not-ready", "unreachable")
    )
    return f"""
- name: {name}
  kind: WorkloadFailover
  mode: Enforce
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, namespace: {NAMESPACE}, name: {name}}}]
  propagateDeps: true
  placement:
    clusterTolerations:{tolerations}
    spreadConstraints: [{{spreadByField: cluster, minGroups: {count}, maxGroups: {count}}}]
    replicaScheduling: {{replicaSchedulingType: Duplicated}}
  failover: {failover}
  guards: {guards}{more}
"""


def document(names: Sequence[str], *rules: str, more: str = "") -> str:
    return f"apiVersion: reactor/v1\nsources:{sources(names)}{more}\nrules:{''.join(rules)}"


BY_CLUSTER = "{cluster: {purgeMode: Gracefully, gracePeriodSeconds: 60}}"
WEB = rule("web", count=2, failover=BY_CLUSTER)
CART = rule("cart", count=1, failover=BY_CLUSTER)


@pytest.fixture
async def five(tmp_path: Path) -> AsyncIterator[Members]:
    """Five clusters: web on the first two, cart on the first alone; its Secret is everywhere, as an operator has it."""
    async with Members(tmp_path / "members", 5) as members:
        members.run("web", ["member1", "member2"])
        members.run("cart", ["member1"])
        for name in members.names[1:]:
            secret = members["member1"].cluster.get("secrets", "cart-key", NAMESPACE)
            members[name].cluster.create({**secret, "metadata": {"name": "cart-key", "namespace": NAMESPACE}})
        await until(lambda: members.healthy("web") == {"member1", "member2"}, "web is healthy")
        await until(lambda: members.healthy("cart") == {"member1"}, "cart is healthy")
        yield members


def reactor(members: Members, folder: Path, rules: str, **settings: Any) -> Service:
    """A reactor that knows these clusters."""
    return Service(folder / "reactor", rules=rules, settings={"clusters": members.settings(), **settings})


async def group(service: Service, name: str, object_: str) -> Group | None:
    found = [one for one in await service.groups() if (one.rule, one.object) == (name, object_)]
    return found[0] if found else None


async def watched(service: Service, copies: dict[str, set[str]]) -> None:
    """Wait until it has seen these copies to be healthy, and every cluster."""

    async def all_seen() -> bool:
        groups = {one.object: one for one in await service.groups() if not one.rule.startswith("@") and one.object != "*"}
        return all(_sees(groups.get(f"{NAMESPACE}/Deployment/{name}"), where) for name, where in copies.items())

    await until_told(all_seen, f"the reactor knows {copies}")


def _sees(group: Group | None, where: set[str]) -> bool:
    if group is None or group.workload is None:
        return False
    healthy = {name.split("/")[1] for name, member in group.members.items() if member.settled}
    return group.workload.copies.keys() == where and where <= healthy


async def remembered(service: Service, count: int) -> None:
    """Wait until so many objects are remembered."""

    async def enough() -> bool:
        async with JetStreamBus.connect(service.bus_url, name="test") as bus:
            return len(await bus.store(TEMPLATES).entries(">")) >= count

    await until_told(enough, f"{count} objects are remembered")


FULL = {"Secret/web-key", "ConfigMap/web-settings", "ServiceAccount/web-account", "PersistentVolumeClaim/web-data",
        "Deployment/web"}  # fmt: skip


async def test_workloads_leave_a_dead_cluster_with_all_they_need_and_are_purged_there_when_it_is_back(
    five: Members, tmp_path: Path
) -> None:
    async with reactor(five, tmp_path, document(five.names, WEB, CART)) as service:
        await watched(service, {"web": {"member1", "member2"}, "cart": {"member1"}})
        await remembered(service, 8)
        began = await five["member1"].refuse()
        await until(
            lambda: len(five.healthy("web") - {"member1"}) == 2 and five.healthy("cart") - {"member1"},
            "web and cart run elsewhere",
        )
        print(five.seen[-5:], five.gaps("web", began), five.gaps("cart", began))
        print([(w.cluster, w.resource, w.verb, w.name) for w in five.writes()])
        for one in await service.groups():
            if not one.rule.startswith("@"):
                print(one.rule, one.object, one.held, one.workload.moves, [(o.action.id, o.action.kind if hasattr(o.action,'kind') else type(o.action).__name__, o.failed, o.wanted) for o in one.owed])
        back = await five["member1"].come_back()
        try:
            await until(lambda: five.on("web") == {"member2", "member3"}, "the old copy is purged", within=15)
        finally:
            print([(w.cluster, w.resource, w.verb, w.name) for w in five.writes()])
            for one in await service.groups():
                if not one.rule.startswith("@"):
                    print(one.rule, one.object, one.held, one.workload.moves, [(o.action.id, type(o.action).__name__, o.failed, o.wanted) for o in one.owed])
