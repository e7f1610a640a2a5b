"""Member clusters that stop answering and come back, each with a kubelet that lets Deployments' status follow.

Each cluster is an API server of its own. While one is silent its kubelet goes on: what ran there runs there still, and
no client can see it. A watcher notes which copies of each workload are healthy and can be reached.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reactor.actions.annotations import EPOCH_ANNOTATION
from reactor.actions.workload.marks import DECIDED_ANNOTATION
from reactor.demo.kube import WORLD, EmulatedCluster, Emulator, Hang, JsonObject, LoggedWrite, write_kubeconfig
from reactor.demo.kube.faults import Fault, Handle
from reactor.runtime.clock import Clock
from rules.kinds.traffic.route_state import DECISION_ANNOTATION
from tests.e2e.waiting import until

NAMESPACE = "shop"
TICK = 0.01
"""Seconds between two looks of kubelets and watcher: no gap between two copies is shorter in any real cluster."""
STAMPS = (DECISION_ANNOTATION, EPOCH_ANNOTATION, DECIDED_ANNOTATION)
NEEDS = ("configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims")


def application(name: str, *, replicas: int = 2) -> list[JsonObject]:
    """A Deployment, and before it all that its pods cannot start without."""

    def obj(kind: str, suffix: str, **body: Any) -> JsonObject:
        metadata = {"name": f"{name}-{suffix}", "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}

    container = {
        "name": "app", "image": "registry.invalid/app:1",
        "envFrom": [{"configMapRef": {"name": f"{name}-settings"}}, {"secretRef": {"name": f"{name}-key"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    pod = {
        "serviceAccountName": f"{name}-account", "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"{name}-data"}}],
    }  # fmt: skip
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name, "team": "shop"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }  # fmt: skip
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return [
        obj("ConfigMap", "settings", data={"colour": "green"}),
        obj("Secret", "key", type="Opaque", data={"token": "c2VjcmV0"}),
        obj("ServiceAccount", "account"),
        obj("PersistentVolumeClaim", "data", spec=claim),
        deployment,
    ]


@dataclass
class Member:
    """One cluster."""

    name: str
    emulator: Emulator
    cluster: EmulatedCluster
    answers: bool = True
    ready_seconds: float = 0.5
    """Seconds until new pods are ready."""
    crashing: set[str] = field(default_factory=set)
    """Deployments whose pods never get ready here, or are ready no more."""
    _began: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """Time at which the kubelet first saw a Deployment in this generation, by name and uid."""
    _hang: Handle | None = None

    async def refuse(self) -> float:
        """Stop answering: connections are refused, watches are cut. Gives when."""
        self.answers = False
        await self.emulator.close()
        return get_running_loop().time()

    def hang(self) -> float:
        """Stop answering: connections are taken, and nothing is said. Gives when."""
        self.answers = False
        self._hang = self.cluster.faults.add(Fault(Hang()))
        self.cluster.cut_watches()
        return get_running_loop().time()

    async def come_back(self) -> float:
        """Answer again, with all objects that were there. Gives the time."""
        if self._hang is not None:
            self._hang.remove()
            self._hang = None
        else:
            await self.emulator.__aenter__()
        self.answers = True
        return get_running_loop().time()

    def deployment(self, name: str) -> JsonObject | None:
        """Give a Deployment, if it is there."""
        return self.cluster.find("deployments", name, NAMESPACE)

    def has(self) -> set[str]:
        """Objects in the namespace: `ConfigMap/web-settings`, `Deployment/web`."""
        kinds = (*NEEDS, "deployments")
        found = (one for kind in kinds for one in self.cluster.list(kind, NAMESPACE))
        return {f"{one['kind']}/{one['metadata']['name']}" for one in found}

    def writes(self, resource: str = "", name: str = "") -> list[LoggedWrite]:
        """Writes of the reactor in this cluster."""
        return [
            write
            for write in self.emulator.writes.effective(resource)
            if write.manager != WORLD and name in ("", write.name)
        ]

    def live(self) -> set[str]:
        """Let every Deployment's status follow its spec, and give those that are healthy."""
        now, healthy = get_running_loop().time(), set()
        for one in self.cluster.list("deployments", NAMESPACE):
            metadata, wanted = one["metadata"], one["spec"].get("replicas", 1)
            key = (metadata["name"], metadata["uid"], metadata["generation"])
            ready = now - self._began.setdefault(key, now) >= self.ready_seconds
            available = wanted if ready and metadata["name"] not in self.crashing else 0
            status = {
                "observedGeneration": metadata["generation"], "replicas": wanted, "updatedReplicas": wanted,
                "availableReplicas": available, "readyReplicas": available, "unavailableReplicas": wanted - available,
            }  # fmt: skip
            if one.get("status") != status:
                self.cluster.patch("deployments", metadata["name"], {"status": status}, NAMESPACE, status=True)
            if available and "deletionTimestamp" not in metadata:
                healthy.add(metadata["name"])
        return healthy


class Members:
    """`async with Members(folder, 5)`: member1 to member5, each with an empty namespace `shop`."""

    def __init__(self, folder: Path, count: int) -> None:
        self.names = [f"member{number}" for number in range(1, count + 1)]
        self._folder = folder
        self._members: dict[str, Member] = {}
        self._watcher: asyncio.Task[None] | None = None
        self.seen: list[tuple[float, Mapping[str, frozenset[str]]]] = []
        """From when on which clusters have a copy of each workload that is healthy and can be reached."""

    async def __aenter__(self) -> Self:
        for name in self.names:
            emulator = Emulator(clock=Clock().now)
            await emulator.__aenter__()
            member = self._members[name] = Member(name, emulator, emulator.cluster(name))
            member.cluster.ensure_namespace(NAMESPACE)
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        for member in self._members.values():
            await member.emulator.close()

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def settings(self, **more: Mapping[str, Any]) -> dict[str, Any]:
        """Entries of the reactor's settings for the clusters. `more`: further keys of one, by its name."""
        self._folder.mkdir(parents=True, exist_ok=True)
        files = {one.name: write_kubeconfig(self._folder / one.name, one.emulator) for one in self._members.values()}
        return {name: {"kubeconfig": str(path), "context": name, **more.get(name, {})} for name, path in files.items()}

    async def run(self, name: str, *on: str) -> None:
        """Let an application run in these clusters, with all that it needs. Comes back when it is healthy there."""
        for cluster in on:
            for one in application(name):
                self[cluster].cluster.create(one)
        await self.settle(name, *on)

    async def settle(self, name: str, *on: str) -> None:
        """Wait until it is healthy in these clusters, and exists in no other."""
        where = {*on}
        await until(lambda: self.healthy(name) == self.on(name) == where, f"{name} runs on {', '.join(on)} alone")

    def healthy(self, workload: str) -> frozenset[str]:
        """Clusters in which it is healthy now."""
        return self.seen[-1][1].get(workload, frozenset()) if self.seen else frozenset()

    def on(self, workload: str) -> set[str]:
        """Clusters in which its Deployment exists, also those that do not answer."""
        return {one.name for one in self._members.values() if one.deployment(workload) is not None}

    def since_healthy(self, workload: str, cluster: str) -> float:
        """Time since which its copy there has been healthy."""
        at = get_running_loop().time()
        for moment, seen in reversed(self.seen):
            if cluster not in seen.get(workload, ()):
                return at
            at = moment
        return at

    def gaps(self, workload: str, after: float) -> list[tuple[float, float]]:
        """Spans of time, since that moment, in which no healthy copy of it could be reached."""
        out: list[tuple[float, float]] = []
        ends = [at for at, _ in self.seen[1:]] + [get_running_loop().time()]
        for (began, seen), end in zip(self.seen, ends, strict=True):
            if seen.get(workload) or end <= after:
                continue
            if out and out[-1][1] == began:
                out[-1] = (out[-1][0], end)
            else:
                out.append((max(began, after), end))
        return out

    def writes(self) -> list[LoggedWrite]:
        """All that the reactor changed anywhere, in order."""
        return sorted((write for one in self._members.values() for write in one.writes()), key=lambda one: one.at)

    def doubled(self) -> list[LoggedWrite]:
        """Writes that made an object what an earlier one had made it. There should be none."""
        seen: set[tuple[object, ...]] = set()
        twice = []
        for write in self.writes():
            key = (write.cluster, write.resource, write.name, write.verb, write.subresource, repr(_meant(write.body)))
            twice += [write] if key in seen else []
            seen.add(key)
        return twice

    async def _watch(self) -> None:
        while True:
            healthy: dict[str, set[str]] = {}
            for one in self._members.values():
                for workload in one.live():
                    if one.answers:
                        healthy.setdefault(workload, set()).add(one.name)
            now = {workload: frozenset(where) for workload, where in healthy.items()}
            if not self.seen or self.seen[-1][1] != now:
                self.seen.append((get_running_loop().time(), now))
            await asyncio.sleep(TICK)


def _meant(body: Any) -> Any:
    """Content of a write without its preconditions and the stamps of the decision."""
    if isinstance(body, dict):
        kept = {key: value for key, value in body.items() if key not in ("resourceVersion", "uid", *STAMPS)}
        return {key: _meant(value) for key, value in sorted(kept.items())}
    if isinstance(body, list):
        return [_meant(item) for item in body if not _beside(item)]
    return body


def _beside(item: Any) -> bool:
    if not isinstance(item, dict) or "op" not in item:
        return False
    return item["op"] == "test" or str(item["path"]).endswith(tuple(key.replace("/", "~1") for key in STAMPS))
