"""Workloads beside the routes: each runs on the first of two clusters, and is placed on the second where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf

from bus.messages import CancelEviction, Cluster, Evict, Outcome, Place, Purge, Workload
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import done, failed
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from tests.judge.object_history import Write
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.loop import VirtualLoop
from tests.simulation.fleet.scenario import Plan

NAMESPACE, KIND = "shop", "Deployment"
MEMBERS = FIRST, SECOND = "one", "two"
"""The clusters."""
STARTS = 1.5
"""Seconds from when a copy is placed until it is healthy."""

WorkloadAction = Place | Evict | Purge | CancelEviction


def copy_target(cluster: str, name: str) -> str:
    """Target of one copy's health."""
    return f"workload/{cluster}/{NAMESPACE}/{KIND}/{name}"


def workload_rule(plan: Plan, mode: Sequence[str]) -> list[str]:
    """Give a workload's rule, as a person would write it. `mode`: its lines about who lets it act."""
    one_of_two = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
    return [
        f"- name: {plan.name}", "  kind: WorkloadFailover", *mode,
        "  resourceSelectors:",
        f"  - {{apiVersion: apps/v1, kind: {KIND}, namespace: {NAMESPACE}, name: {plan.name}}}",
        "  placement:", f"    clusterAffinity: {{clusterNames: [{FIRST}, {SECOND}]}}", f"    {one_of_two}",
        "    replicaScheduling: {replicaSchedulingType: Duplicated}",
        "  failover:", "    application:",
        f"      decisionConditions: {{tolerationSeconds: {plan.toleration}}}", "      purgeMode: Gracefully",
        f"  recoverySeconds: {plan.recovery}",
    ]  # fmt: skip


def members(at: datetime) -> list[Cluster]:
    """Give the clusters as they are listed."""
    return [Cluster(name=name, observed_at=at) for name in MEMBERS]


class Workloads:
    """All copies. `wrote` is called when a workload is first placed elsewhere, and when nothing healthy is left of it;
    what is cleared up after it is not judged."""

    def __init__(
        self, loop: VirtualLoop, names: list[str], is_down: Callable[[], bool], wrote: Callable[[str, Write], None]
    ) -> None:
        """`is_down`: whether the API servers of the clusters answer no request."""
        self._loop, self._is_down, self._wrote = loop, is_down, wrote
        self._begun: dict[str, dict[str, float]] = {name: {FIRST: -inf} for name in names}
        """By workload and cluster, when the copy there was placed."""
        self._marked: set[tuple[str, str]] = set()
        """Workloads and clusters whose copy is being evicted."""
        self._placed: set[str] = set()
        self.healthy_on_first: Callable[[str], bool] = lambda _: True
        """Gives the truth about a workload's copy on the first cluster."""

    @property
    def names(self) -> list[str]:
        """All workloads."""
        return [*self._begun]

    def listed(self, name: str, at: datetime) -> Workload:
        """Give the workload as it is listed."""
        return Workload(
            namespace=NAMESPACE, kind=KIND, name=name, replicas=1, clusters=dict.fromkeys(sorted(self._begun[name]), 1),
            observed_at=at,
        )  # fmt: skip

    def health(self) -> dict[str, bool]:
        """Give the truth about each copy, and about each cluster."""
        clusters = {f"cluster/{cluster}": True for cluster in MEMBERS if self._begun}
        return clusters | {
            copy_target(cluster, name): self._is_healthy(name, cluster)
            for name, begun in self._begun.items()
            for cluster in begun
        }

    def _is_healthy(self, name: str, cluster: str) -> bool:
        begun = self._begun[name].get(cluster, inf)
        return begun + STARTS <= self._loop.time() and (cluster != FIRST or self.healthy_on_first(name))

    async def is_as_asked(self, action: WorkloadAction) -> bool:
        """Raises ApiUnavailable."""
        if self._is_down():
            raise ApiUnavailable("connection refused")
        name = action.workload.name
        match action:
            case Place():
                return action.clusters.keys() <= self._begun[name].keys()
            case Evict():
                return action.from_ not in self._begun[name] or (name, action.from_) in self._marked
            case Purge():
                return action.from_ not in self._begun[name]
            case CancelEviction():
                return (name, action.from_) not in self._marked

    async def take(self, action: WorkloadAction, sent: float) -> None:
        """Do it. `sent`: when it left its client. Raises ApiUnavailable."""
        if await self.is_as_asked(action):
            return
        name, now = action.workload.name, self._loop.time()
        begun = self._begun[name]
        match action:
            case Place():
                begun |= {cluster: now for cluster in action.clusters if cluster not in begun}
                if SECOND in begun and name not in self._placed:
                    self._placed.add(name)
                    self._write(action, sent, {name: 0, SECOND: 1})
            case Evict():
                self._marked.add((name, action.from_))
            case Purge():
                del begun[action.from_]
                self._marked.discard((name, action.from_))
                if not any(self._is_healthy(name, cluster) for cluster in begun):
                    self._write(action, sent, {name: 0, SECOND: 0})
            case CancelEviction():
                self._marked.discard((name, action.from_))

    def _write(self, action: WorkloadAction, sent: float, weights: Mapping[str, int]) -> None:
        now = self._loop.time()
        self._wrote(action.workload.name, Write(now, weights, action.generation, action.epoch, now - sent))


async def carry_workload(
    workloads: Workloads, action: WorkloadAction, api: Link, clock: Clock, context: ExecutionContext
) -> Outcome:
    """Do it as a carrier does: a look, and a write where it is needed."""
    what = f"{action.object} {type(action).__name__}"
    try:
        as_asked = await api.call(f"GET {what}", lambda: workloads.is_as_asked(action))
        if not as_asked:
            sent = asyncio.get_running_loop().time()
            await context.write(action.id, lambda: api.call(f"APPLY {what}", lambda: workloads.take(action, sent)))
    except ReactorError as error:
        return failed(action.id, clock, error)
    return done(action.id, clock, wrote=not as_asked)
