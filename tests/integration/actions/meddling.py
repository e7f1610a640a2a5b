"""A client between whose read and write something happens: the moments that races are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from reactor.clients.kubernetes_port import JsonObject, KubeApi

Step = Callable[[], Awaitable[object]]


async def nothing() -> None:
    """No meddling."""


def once(step: Step) -> Step:
    """The step at the first call, nothing afterwards."""
    left = [step]

    async def taken() -> None:
        if left:
            await left.pop()()

    return taken


class Meddled:
    """A real client; `after_read` runs when an object has been read, `after_write` when a patch was accepted."""

    def __init__(self, api: KubeApi, *, after_read: Step = nothing, after_write: Step = nothing) -> None:
        self._api = api
        self._after_read = after_read
        self._after_write = after_write

    @property
    def cluster(self) -> str:
        return self._api.cluster

    async def get(self, path: str) -> JsonObject:
        found = await self._api.get(path)
        if "/namespaces/" in path:  # not discovery
            await self._after_read()
        return found

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        return await self._api.list(path, label_selector=label_selector, field_selector=field_selector)

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        answer = await self._api.json_patch(path, operations)
        await self._after_write()
        return answer

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        return await self._api.create(path, body)

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        answer = await self._api.apply(path, body, force=force)
        await self._after_write()
        return answer

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        await self._api.delete(path, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds)


class Overruled(Meddled):
    """An admission webhook that changes what we write: the answer shows what it made of it."""

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        await super().json_patch(path, operations)
        return await self._api.get(path)
