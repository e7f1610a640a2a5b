"""The cluster whose routes are moved: objects with resource versions, and a log of every effective write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from bus.errors import Unavailable
from bus.messages import SetWeights
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, JsonObject, NotFound
from reactor.demo.kube.errors import StatusError
from reactor.demo.kube.patch import json_patch
from tests.judge.object_history import Write
from tests.simulation.fleet.clusters import cluster_object, cluster_path, cluster_weights
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.loop import VirtualLoop

CLUSTER, NAMESPACE = "east", "shop"
BASE = "/apis/split.smi-spec.io/v1alpha2"
DECISION, EPOCH = "reactor/decision", "reactor/epoch"


def path_of(name: str) -> str:
    """API path of a route."""
    return f"{BASE}/namespaces/{NAMESPACE}/trafficsplits/{name}"


class Cluster:
    """The API server's side. `wrote` is called after every effective write."""

    def __init__(
        self, loop: VirtualLoop, names: Sequence[str], clusters: Sequence[str], wrote: Callable[[str, Write], None]
    ) -> None:  # fmt: skip
        self._loop, self._wrote = loop, wrote
        self._version = 100
        self.is_down = False
        """True while it does not answer."""
        self.objects = {path_of(name): _split(name) for name in names}
        self._clusters = {cluster_path(name): cluster_object(name) for name in clusters}

    async def get(self, path: str) -> JsonObject:
        """Raises NotFound, ApiUnavailable."""
        if self.is_down:
            raise ApiUnavailable("connection refused")
        if path == BASE:
            return {"resources": [{"name": "trafficsplits"}]}
        if path not in (kept := self._kept(path)):
            raise NotFound(path)
        return kept[path]

    async def json_patch(self, path: str, operations: Sequence[JsonObject], sent: float | None = None) -> JsonObject:
        """Raises NotFound, Conflict, ApiUnavailable. `sent`: when it left its client; default: now."""
        before = await self.get(path)
        try:
            after = json_patch(before, list(operations))
        except StatusError as error:
            raise Conflict(str(error)) from error
        if after == before:
            return before
        self._version += 1
        metadata = {**after["metadata"], "resourceVersion": str(self._version)}
        self._kept(path)[path] = after = {**after, "metadata": metadata}
        under_way = 0.0 if sent is None else self._loop.time() - sent
        self._wrote(metadata["name"], replace(self._seen(after), under_way=under_way))
        return after

    async def set_weights(self, action: SetWeights) -> None:
        """Write the weights as a target that knows nothing of decisions: it accepts any. The note is for
        the observer."""
        if self._seen(self.objects[path_of(action.route.name)]).weights == action.weights:
            return
        note = {DECISION: action.id, EPOCH: str(action.epoch)}
        operations: list[JsonObject] = [{"op": "add", "path": "/metadata/annotations", "value": note}]
        operations += [
            {"op": "replace", "path": f"/spec/backends/{place}/weight", "value": weight}
            for place, weight in enumerate(action.weights.values())
        ]
        await self.json_patch(path_of(action.route.name), operations)

    def _kept(self, path: str) -> dict[str, JsonObject]:
        return self._clusters if path in self._clusters else self.objects

    def _seen(self, obj: JsonObject) -> Write:
        notes = obj["metadata"].get("annotations") or {}
        weights = cluster_weights(obj) if obj["kind"] == "Cluster" else _weights(obj)
        generation = int(notes.get(DECISION, "/0").rpartition("/")[2])
        return Write(self._loop.time(), weights, generation, int(notes.get(EPOCH, "0")))


def _weights(obj: JsonObject) -> Mapping[str, int]:
    return {backend["service"]: backend["weight"] for backend in obj["spec"]["backends"]}


def _split(name: str) -> JsonObject:
    backends = [{"service": name, "weight": 1}, {"service": f"{name}-second", "weight": 0}]
    metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": "1", "uid": name}
    return {
        "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "metadata": metadata,
        "spec": {"service": name, "backends": backends},
    }  # fmt: skip


class Api:
    """One process's client: a `reactor.clients.kubernetes_port.KubeApi` behind a link."""

    cluster = CLUSTER

    def __init__(self, cluster: Cluster, link: Link, random: Random) -> None:
        self._cluster, self._link, self._random = cluster, link, random

    async def get(self, path: str) -> JsonObject:
        """Raises NotFound, ApiUnavailable."""
        return await self._link.call(f"GET {path}", lambda: self._cluster.get(path))

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        """Not asked for by any action."""
        raise NotImplementedError

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        """Raises NotFound, Conflict, ApiUnavailable."""
        sent = asyncio.get_running_loop().time()
        return await self._link.call(f"PATCH {path}", lambda: self._cluster.json_patch(path, operations, sent))

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        """Not asked for by any action on a route."""
        raise NotImplementedError

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        """Events: taken, and forgotten."""

        async def take() -> JsonObject:
            return dict(body)

        return await self._link.call(f"POST {path}", take)

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        """Not asked for by any action."""
        raise NotImplementedError


def unavailable(why: str) -> Exception:
    """Error of an API client that gets no answer."""
    return ApiUnavailable(why)


def bus_unavailable(why: str) -> Exception:
    """Error of a bus client that gets no answer."""
    return Unavailable(why)
