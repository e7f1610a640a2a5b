"""A substitute for the controllers of members: each Deployment is Ready a while after it was made or changed."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from tests.karmada.api_server import ApiServer

READY_SECONDS = 1.0
DEPLOYMENTS = "/apis/apps/v1/deployments"
MERGE = "application/merge-patch+json"


class Kubelets:
    """`async with Kubelets(members, changed)`: `changed` is called whenever the Ready copies of a member change."""

    def __init__(self, members: dict[str, ApiServer], changed: Callable[[], None]) -> None:
        self._members = members
        self._changed = changed
        self._tasks: list[asyncio.Task[None]] = []
        self._ages: dict[tuple[str, str, int], float] = {}
        self.sick: set[tuple[str, str]] = set()
        """Member and name: Deployments that are to be unready."""
        self.found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in members}
        """Member to its Deployments, by name."""

    def ready(self, name: str) -> set[str]:
        """The members in which a Deployment of this name has Ready replicas."""
        found = {member: copies.get(name, {}) for member, copies in self.found.items()}
        return {member for member, one in found.items() if (one.get("status") or {}).get("readyReplicas")}

    async def __aenter__(self) -> Kubelets:
        tls = ssl.create_default_context(cafile=next(iter(self._members.values())).authority["ca.crt"])
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        for name, member in self._members.items():
            for work in (self._watch, self._run):
                self._tasks.append(asyncio.create_task(_again(work, name, member)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()
        await asyncio.sleep(0.25)  # aiohttp closes what it held by TLS only after it has said so

    async def _watch(self, name: str, member: ApiServer) -> None:
        """Follow the objects there."""
        headers = {"Authorization": f"Bearer {member.token}"}
        while True:
            async with self._session.get(f"{member.url}{DEPLOYMENTS}", headers=headers) as answer:
                listed = await answer.json()
            self.found[name] = {one["metadata"]["name"]: one for one in listed["items"]}
            self._changed()
            query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": "600"}
            async with self._session.get(f"{member.url}{DEPLOYMENTS}", headers=headers, params=query) as events:
                async for line in events.content:
                    event = json.loads(line)
                    self._take(name, event["type"], event["object"])

    def _take(self, name: str, kind: str, one: Any) -> None:
        if kind == "DELETED":
            self.found[name].pop(one["metadata"]["name"], None)
        elif kind in ("ADDED", "MODIFIED"):
            self.found[name][one["metadata"]["name"]] = one
        self._changed()

    async def _run(self, name: str, member: ApiServer) -> None:
        """Let statuses follow."""
        headers = {"Authorization": f"Bearer {member.token}", "Content-Type": MERGE}
        while True:
            for one in [*self.found[name].values()]:
                status = self._status(name, one)
                if any((one.get("status") or {}).get(key, 0) != value for key, value in status.items()):
                    meta = one["metadata"]
                    path = f"/apis/apps/v1/namespaces/{meta['namespace']}/deployments/{meta['name']}/status"
                    body = json.dumps({"status": status})
                    async with self._session.patch(f"{member.url}{path}", data=body, headers=headers) as answer:
                        await answer.read()  # gone meanwhile: the watch tells
            await asyncio.sleep(0.1)

    def _status(self, name: str, one: Any) -> dict[str, int]:
        meta, now = one["metadata"], asyncio.get_running_loop().time()
        age = now - self._ages.setdefault((name, meta["uid"], meta["generation"]), now)
        wanted = one["spec"].get("replicas", 1)
        ready = wanted if age >= READY_SECONDS and (name, meta["name"]) not in self.sick else 0
        return {
            "observedGeneration": meta["generation"], "replicas": wanted, "updatedReplicas": wanted,
            "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": wanted - ready,
        }  # fmt: skip


async def _again(work: Callable[[str, ApiServer], Awaitable[None]], name: str, member: ApiServer) -> None:
    """Work on; a member that is away is come back to."""
    while True:
        try:
            await work(name, member)
        except aiohttp.ClientError as error:
            print(f"{name}: {error}")
            await asyncio.sleep(0.2)
