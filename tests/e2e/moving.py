"""Rules for the workloads of member clusters, and what the service says of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bus.errors import BusError
from bus.jetstream import JetStreamBus
from bus.topology import TEMPLATES
from rules.core.group import Group
from tests.e2e.members import NAMESPACE
from tests.e2e.service import Service
from tests.e2e.waiting import until_told

BORNE = 1.0
"""Seconds for which a silent cluster is tolerated: by its probe, and again by the workloads' tolerations."""
BY_CLUSTER = "{cluster: {purgeMode: Gracefully, gracePeriodSeconds: 60}}"
GUARDS = "{ratePerSecond: 100}"


def document(names: Sequence[str], *rules: str, more: str = "") -> str:
    """A rule file with a probe and a watch for each cluster, as quick as they can be; a failed reading takes 2 s."""
    probes = "".join(
        f"""
- {{name: api-{name}, kind: ClusterProbe, cluster: {name}, everySeconds: 2, failureSeconds: {BORNE:g},
   successSeconds: {BORNE:g}, refreshSeconds: 2}}
- {{name: copies-{name}, kind: WorkloadWatch, cluster: {name}, namespace: {NAMESPACE}, kinds: [Deployment],
   refreshSeconds: 5}}"""
        for name in names
    )
    return f"apiVersion: reactor/v1\nsources:{probes}{more}\nrules:{''.join(rules)}"


def rule(
    name: str, *, copies: int = 1, failover: str = BY_CLUSTER, borne: float = BORNE, guards: str | None = GUARDS,
    on: Sequence[str] = (), every: bool = False,
) -> str:  # fmt: skip
    """A rule for the Deployment of its name, or for `every` one of the team, with so many full copies.

    `on`: the only clusters that it may use. `guards` None: those by default.
    """
    which = "labelSelector: {matchLabels: {team: shop}}" if every else f"name: {name}"
    affinity = f"\n    clusterAffinity: {{clusterNames: [{', '.join(on)}]}}" if on else ""
    return f"""
- name: {name}
  kind: WorkloadFailover
  mode: Enforce
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, namespace: {NAMESPACE}, {which}}}]
  propagateDeps: true
  placement:{affinity}
    clusterTolerations:
    - {{operator: Exists, effect: NoExecute, tolerationSeconds: {borne:g}}}
    spreadConstraints: [{{spreadByField: cluster, minGroups: {copies}, maxGroups: {copies}}}]
    replicaScheduling: {{replicaSchedulingType: Duplicated}}
  failover: {failover}{f"{chr(10)}  guards: {guards}" if guards is not None else ""}
"""


async def group(service: Service, name: str, rule: str = "") -> Group | None:
    """Stored group of a Deployment; None: none."""
    wanted = f"{NAMESPACE}/Deployment/{name}"
    return next((one for one in await service.groups() if (one.rule, one.object) == (rule or name, wanted)), None)


async def knows(service: Service, copies: Mapping[str, Collection[str]], *, clusters: int, rule: str = "") -> None:
    """Wait until it has seen these copies to be healthy, and so many clusters."""

    async def seen() -> bool:
        groups = {(one.rule, one.object): one for one in await service.groups()}
        return all(
            _sees(groups.get((rule or name, f"{NAMESPACE}/Deployment/{name}")), where)
            and _counts(groups.get((rule or name, "*"))) >= clusters
            for name, where in copies.items()
        )

    await until_told(seen, f"the reactor knows {copies} and {clusters} clusters")


def _sees(group: Group | None, where: Collection[str]) -> bool:
    if group is None:
        return False
    healthy = {target.split("/")[1] for target, member in group.members.items() if member.settled}
    return group.state.copies.keys() == {*where} and healthy >= {*where}


def _counts(census: Group | None) -> int:
    members = census.members.values() if census is not None else ()
    return sum(member.settled is not None for member in members)


async def remembers(service: Service, count: int) -> None:
    """Wait until it could restore so many objects although their clusters are dead."""

    async def enough() -> bool:
        try:
            async with JetStreamBus.connect(service.bus_url, name="test") as bus:
                return len(await bus.store(TEMPLATES).entries(">")) >= count
        except (BusError, OSError):
            return False

    await until_told(enough, f"{count} objects are remembered")


async def holds(service: Service, name: str, reason: str, rule: str = "") -> Group:
    """Wait until it says that it holds for this reason."""

    async def held() -> Group | None:
        found = await group(service, name, rule)
        return found if found is not None and found.held is not None and found.held.reason == reason else None

    return await until_told(held, f"{name} holds: {reason}")


async def settled(service: Service, *names: str, rule: str = "") -> None:
    """Wait until nothing moves any more, and nothing is owed."""

    async def all_done() -> bool:
        found = [await group(service, name, rule) for name in names]
        return all(one is not None and not one.state.moves and not one.outbox for one in found)

    await until_told(all_done, f"nothing is under way any more for {', '.join(names)}")


async def records(service: Service) -> list[dict[str, Any]]:
    """All that is in the audit."""
    return [json.loads(line) for line in (await service.printed("audit", "export")).splitlines() if line[0] == "{"]
