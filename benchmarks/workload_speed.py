"""10,000 workloads on 50 clusters, one of which is lost: how long the core takes to decide what becomes of them."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Result
from bus.messages import Action, Cluster, Fact, Health, Observation, Place, WorkloadCopy
from rules import loader
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at

WORKLOADS, CLUSTERS, COPIES = 10_000, 50, 2
TOLERATION = 30
RULE = f"""
apiVersion: reactor/v1
rules:
- name: fleet
  kind: WorkloadFailover
  mode: Enforce
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, labelSelector: {{matchLabels: {{tier: fleet}}}}}}]
  placement:
    clusterTolerations: [{{operator: Exists, effect: NoExecute, tolerationSeconds: {TOLERATION}}}]
    spreadConstraints: [{{spreadByField: cluster, minGroups: {COPIES}, maxGroups: {COPIES}}}]
    replicaScheduling: {{replicaSchedulingType: Duplicated}}
  failover: {{cluster: {{purgeMode: Gracefully}}, application: {{}}}}
  guards: {{ratePerSecond: 1000}}
"""
LOST = "member00"
LOST_AT = 100.0


def cluster_loss() -> Result:
    """Measure the loss of a cluster. Runs in a process of its own, so that the memory is that of this alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        figures = process.submit(measured).result()
    bars = {"decided_seconds": "< 2", "memory_mb": "< 400"}
    return Result("cluster-loss", "10,000 workloads on 50 clusters lose one cluster", figures, bars)


def measured() -> dict[str, float]:
    """Fill a book, lose a cluster, and decide until every workload of that cluster has a new place."""
    routing = Routing.of(loader.load_rules([("bench.yaml", RULE)]))
    group_store = GroupStore(routing)
    began = time.perf_counter()
    for number in range(CLUSTERS):
        group_store.apply(_cluster(number), at(0))
    for number in range(WORKLOADS):
        group_store.apply(_workload(number), at(1))
    filled = time.perf_counter() - began
    affected = sum(LOST in group.state.copies for group in group_store.groups.values())

    began = time.perf_counter()
    _settle(group_store, [_observed(f"cluster/{LOST}", Health.UNHEALTHY, LOST_AT)], at(LOST_AT))
    noticed = time.perf_counter() - began
    placed = 0
    while placed < affected:
        moment = group_store.next_alarm()
        assert moment is not None, f"{placed} of {affected} are placed, and nothing is waited for"
        placed += sum(isinstance(action, Place) for action in _ring(group_store, moment))
    decided = time.perf_counter() - began
    return {
        "workloads": WORKLOADS, "clusters": CLUSTERS, "affected": affected, "filled_seconds": round(filled, 2),
        "noticed_seconds": round(noticed, 3), "decided_seconds": round(decided, 3), "memory_mb": round(_memory_mb()),
    }  # fmt: skip


def _settle(group_store: GroupStore, facts: Sequence[Fact], now: datetime) -> list[Action]:
    """Fold facts in, and all that groups say to each other about them, as the bus would bring it."""
    actions: list[Action] = []
    while facts:
        decisions = group_store.apply(facts, now)
        actions += [action for decision in decisions for action in decision.actions]
        facts = [fact for decision in decisions for fact in decision.emits]
    return actions


def _ring(group_store: GroupStore, now: datetime) -> list[Action]:
    decisions = group_store.fire_due(now)
    actions = [action for decision in decisions for action in decision.actions]
    return actions + _settle(group_store, [fact for decision in decisions for fact in decision.emits], now)


def _cluster(number: int) -> list[Fact]:
    name = f"member{number:02d}"
    return [
        Cluster(name=name, labels={"tier": "gold"}, region="eu", observed_at=at(0)),
        _observed(f"cluster/{name}", Health.HEALTHY, 0),
    ]


def _workload(number: int) -> list[Fact]:
    facts: list[Fact] = []
    for copy in range(COPIES):
        cluster, name, namespace = f"member{(number + copy) % CLUSTERS:02d}", f"app{number:05d}", f"team{number % 100}"
        labels = {"app": name, "tier": "fleet", "team": namespace}
        facts += [
            WorkloadCopy(
                namespace=namespace, kind="Deployment", name=name, cluster=cluster, replicas=3, uid=f"u-{number}",
                labels=labels, observed_at=at(1),
            ),
            _observed(f"workload/{cluster}/{namespace}/Deployment/{name}", Health.HEALTHY, 1, labels),
        ]  # fmt: skip
    return facts


def _observed(target: str, status: Health, second: float, labels: dict[str, str] | None = None) -> Observation:
    return Observation(
        target=target, status=status, signal="watch", observed_at=at(second), stale_seconds=3600, labels=labels or {},
        detail="3 replicas available",
    )  # fmt: skip


def _memory_mb() -> float:
    """The most that this process has had in memory; Linux only, as are the bars."""
    status = Path("/proc/self/status").read_text("utf-8")
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
