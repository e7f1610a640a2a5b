"""An API that begins no write once the time of its call is over.

A process that was stopped (SIGSTOP, a machine that was paused) wakes up in the middle of a call: by then somebody else
may be undoing what it does, and every precondition may hold again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reactor.actions.zone.context import ZoneWorld
from reactor.clients.aws import Ec2
from reactor.clients.port import ApiUnavailable, JsonObject, KubeApi
from reactor.clock import Clock


def bounded(world: ZoneWorld, clock: Clock, seconds: float) -> ZoneWorld:
    """Give the world for a call that begins now and lasts so long."""
    bound = _Bound(clock, seconds)

    async def clusters(name: str) -> KubeApi:
        return BoundedKube(await world.clusters(name), bound)

    async def ec2(region: str) -> Ec2:
        return BoundedEc2(await world.ec2(region), bound)

    return replace(world, clusters=clusters, ec2=ec2)


class _Bound:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ends = clock.monotonic() + seconds

    def check(self, what: str) -> None:
        if self._clock.monotonic() >= self._ends:
            raise ApiUnavailable(f"{what}: the time of this call is over, so nothing more is begun")


class BoundedKube:
    """One cluster, for one call; implements KubeApi."""

    def __init__(self, api: KubeApi, bound: _Bound) -> None:
        self.api = api
        self._bound = bound

    @property
    def cluster(self) -> str:
        return self.api.cluster

    async def get(self, path: str) -> JsonObject:
        return await self.api.get(path)

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        return await self.api.list(path, label_selector=label_selector, field_selector=field_selector)

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        self._bound.check(path)
        return await self.api.json_patch(path, operations)

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        self._bound.check(path)
        return await self.api.create(path, body)

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        self._bound.check(path)
        return await self.api.apply(path, body, force=force)

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        self._bound.check(path)
        await self.api.delete(path, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds)


class BoundedEc2:
    """EC2 in one region, for one call; implements Ec2."""

    def __init__(self, ec2: Ec2, bound: _Bound) -> None:
        self._ec2 = ec2
        self._bound = bound

    @property
    def region(self) -> str:
        return self._ec2.region

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        return await self._ec2.read(operation, key, **parameters)

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        self._bound.check(operation)
        return await self._ec2.write(operation, **parameters)
