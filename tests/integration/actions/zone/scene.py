"""A cluster of three zones with everything in it that an isolation meets, and a reactor that may crash at any write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pytest

from bus.messages import Outcome, ZoneStep
from reactor.actions.zone.carrier import carry_out
from reactor.actions.zone.isolation_context import ZoneWorld
from reactor.clients.aws import Ec2
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.demo.kube import EmulatedCluster
from reactor.runtime.clock import Clock
from tests.clock import HandClock
from tests.integration.actions.zone.aws import Crash
from tests.unit.actions.zone.builders import ZONE, ZONE_ID, zone_step

ZONES = {ZONE: ZONE_ID, "us-east-1b": "use1-az1", "us-east-1c": "use1-az2"}
STEPS = ("Fence", "ShiftTraffic", "Evacuate", "CutNetwork", "Verify")
CALLS_MAX = 200

Result = TypeVar("Result")


class Hurried(HandClock):
    """A clock that starts now, as objects of a real API server are dated, and moves only by sleeps and by the test: a
    machine that is busy for seconds uses up no step's time."""

    def __init__(self) -> None:
        super().__init__(start=Clock().now())

    def forward(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass(eq=False)
class CrashingApi:
    """An API that ends its process before or after the n-th write (from 0): after that it does nothing at all."""

    api: KubeApi
    at: int | None = None
    after: bool = False
    writes: list[str] = field(default_factory=list)
    dead: bool = False

    @property
    def cluster(self) -> str:
        return self.api.cluster

    async def get(self, path: str) -> JsonObject:
        self._alive()
        return await self.api.get(path)

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        self._alive()
        return await self.api.list(path, label_selector=label_selector, field_selector=field_selector)

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        return await self._write(f"PATCH {path}", lambda: self.api.json_patch(path, operations))

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        return await self._write(f"POST {path}", lambda: self.api.create(path, body))

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        return await self._write(f"APPLY {path}", lambda: self.api.apply(path, body, force=force))

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        meant = {"uid": uid, "resource_version": resource_version}
        await self._write(f"DELETE {path}", lambda: self.api.delete(path, **meant, grace_seconds=grace_seconds))

    def _alive(self) -> None:
        if self.dead:
            raise Crash

    async def _write(self, what: str, call: Callable[[], Awaitable[Result]]) -> Result:
        self._alive()
        mine = len(self.writes)
        self.writes.append(what)
        if mine == self.at and not self.after:
            self.dead = True
            raise Crash(what)
        answer = await call()
        if mine == self.at:
            self.dead = True
            raise Crash(what)
        return answer


@dataclass
class Reactor:
    """Carries out steps as an engine asks for them: again and again until they are done."""

    apis: Mapping[str, KubeApi]
    clock: Hurried
    settings: Mapping[str, Any] = field(default_factory=dict)
    ec2: Ec2 | None = None
    steps: Sequence[str] = STEPS
    said: list[Any] = field(default_factory=list)
    carrier: str = "Kubernetes"
    details: list[str] = field(default_factory=list)
    """Of all outcomes, in order."""

    async def failover(self, steps: Sequence[str] | None = None) -> None:
        for step in steps or self.steps:
            await self.until_done(self.action(step))

    async def failback(self) -> None:
        backwards = [step for step in reversed(self.steps) if step not in ("CutNetwork", "Verify")]
        for step in ["CutNetwork", *backwards]:
            await self.until_done(self.action(step, undo=True))

    def action(self, step: str, *, undo: bool = False, **more: Any) -> ZoneStep:
        settings = {"batches": {"bakeSeconds": 60}, "steps": list(self.steps), **self.settings}
        known = {"settings": settings, "decided_at": self.clock.now(), "carrier": self.carrier}
        return zone_step(step, undo=undo, **{**known, **more})

    async def once(self, action: ZoneStep) -> Outcome:
        async def cluster(name: str) -> KubeApi:
            return self.apis[name]

        async def region(_: str) -> Ec2:
            assert self.ec2 is not None
            return self.ec2

        async def say(fact: Any) -> None:
            self.said.append(fact)

        outcome = await carry_out(action, ZoneWorld(cluster, region, say=say), self.clock)
        self.details.append(outcome.detail)
        return outcome

    async def until_done(self, action: ZoneStep) -> Outcome:
        for _ in range(CALLS_MAX):
            outcome = await self.once(action)
            if outcome.status == "Done" or outcome.reason == "Maintained":
                return outcome
            assert outcome.reason == "InProgress", outcome
            self.clock.forward(30)
        raise AssertionError(outcome)


def node(name: str, zone: str = ZONE, *, ready: bool = True, since: datetime | None = None, **spec: Any) -> JsonObject:
    labels = {"topology.kubernetes.io/zone": zone, "topology.k8s.aws/zone-id": ZONES[zone]}
    labels |= spec.pop("labels", {})
    condition = {"type": "Ready", "status": "True" if ready else "Unknown"}
    condition |= {"lastTransitionTime": since.isoformat()} if since else {}
    metadata = {"name": name, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def pod(name: str, on: str, *, phase: str = "Running", owner: str = "ReplicaSet", **more: Any) -> JsonObject:
    metadata = {
        "name": name, "namespace": more.pop("namespace", "shop"), "labels": more.pop("labels", {"app": "web"}),
        "annotations": more.pop("annotations", {}), "finalizers": more.pop("finalizers", []),
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}],
    }  # fmt: skip
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"nodeName": on, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def volume(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def budget(name: str, minimum: int, namespace: str = "shop", **labels: str) -> JsonObject:
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }  # fmt: skip


def furnish(cluster: EmulatedCluster) -> None:
    """Put everything in: nodes that others have tainted, cordoned and excluded, and every sort of pod."""
    cluster.create(node("a1"))
    cluster.create(node("a2", taints=[{"key": "gpu", "effect": "NoSchedule"}]))
    cluster.create(node("a3", unschedulable=True))
    cluster.create(node("a4", labels={"node.kubernetes.io/exclude-from-external-load-balancers": "mine"}))
    for zone in ("us-east-1b", "us-east-1c"):
        cluster.create(node(f"{zone[-1]}1", zone))
    cluster.create(pod("web-0", "a1"))
    cluster.create(pod("web-1", "b1"))
    cluster.create(pod("db-0", "a2", owner="StatefulSet", labels={"app": "db"}, **volume("db-0")))
    cluster.create(pod("db-1", "a3", owner="StatefulSet", labels={"app": "db"}, **volume("db-1")))
    cluster.create(pod("log-a1", "a1", owner="DaemonSet", labels={}))
    cluster.create(pod("log-b1", "b1", owner="DaemonSet", labels={"app": "log"}))
    cluster.create(pod("proxy", "a1", namespace="kube-system", annotations={"kubernetes.io/config.mirror": "x"}))
    cluster.create(pod("batch", "a2", phase="Succeeded", labels={"app": "batch"}))
    cluster.create(budget("web", 1, app="web"))
    cluster.settle_budgets()


def picture(cluster: EmulatedCluster, *, pods: bool = True) -> Any:
    """All that an isolation may change, without versions and times."""
    nodes = {one["metadata"]["name"]: _state(one) for one in cluster.list("nodes")}
    running = {
        f"{one['metadata']['namespace']}/{one['metadata']['name']}": one["metadata"].get("labels") or {}
        for one in cluster.list("pods")
    }
    policies = [f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in cluster.list("networkpolicies")]
    return nodes, running if pods else None, sorted(policies)


def _state(obj: JsonObject) -> Any:
    metadata = obj["metadata"]
    return metadata.get("labels") or {}, metadata.get("annotations") or {}, obj.get("spec") or {}


def third(count: int) -> list[Any]:
    """Give the numbers below `count`; a third of them are tested by `make test`, the others by `make prove`."""
    return [pytest.param(number, marks=pytest.mark.long if number % 3 else ()) for number in range(count)]
