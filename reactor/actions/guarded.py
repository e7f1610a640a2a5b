"""The APIs that carriers write to, with an ExecutionContext before each write. Reads pass as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reactor.actions.execution import ExecutionContext
from reactor.clients.aws import Ec2
from reactor.clients.kubernetes_port import JsonObject, KubeApi


def connection_of(api: KubeApi) -> KubeApi:
    """Give what lives as long as the cluster's connection: for what is remembered of it over many actions."""
    return api.api if isinstance(api, GuardedKube) else api


class GuardedKube:
    """One cluster, for one attempt; implements KubeApi."""

    def __init__(self, api: KubeApi, context: ExecutionContext) -> None:
        self.api = api
        self._context = context

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
        return await self._context.write(path, lambda: self.api.json_patch(path, operations))

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        return await self._context.write(path, lambda: self.api.create(path, body))

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        return await self._context.write(path, lambda: self.api.apply(path, body, force=force))

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        await self._context.write(
            path,
            lambda: self.api.delete(path, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds),
        )


class GuardedEc2:
    """EC2 in one region, for one attempt; implements Ec2."""

    def __init__(self, ec2: Ec2, context: ExecutionContext) -> None:
        self._ec2 = ec2
        self._context = context

    @property
    def region(self) -> str:
        return self._ec2.region

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        return await self._ec2.read(operation, key, **parameters)

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        return await self._context.write(operation, lambda: self._ec2.write(operation, **parameters))
