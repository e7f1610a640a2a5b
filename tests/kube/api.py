"""A plain HTTP client for contract tests: it sends what it is told and hides nothing of the answer."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from reactor.demo.kube import Emulator

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PATIENCE = 60.0  # seconds; a real server on a busy machine takes its time


@dataclass(frozen=True)
class Server:
    """Address and credentials of an API server."""

    tier: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | bool = True
    sim: Emulator | None = None


@dataclass(frozen=True)
class Reply:
    """An answer, whatever its code."""

    code: int
    body: Any
    headers: dict[str, str]

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class Events:
    """The events of one running watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Any:
        """Give the next event; None when the server has ended the watch."""
        async with asyncio.timeout(PATIENCE):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def rest(self) -> list[Any]:
        """Give all events until the server ends the watch."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    async def until(self, kind: str) -> Any:
        """Give the next event of this kind."""
        while (event := await self.next()) is not None:
            if event["type"] == kind:
                return event
        raise AssertionError(f"the watch ended without {kind}")


class Api:
    """Requests to one server, in one throw-away namespace."""

    def __init__(self, session: aiohttp.ClientSession, server: Server, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self._session = session

    def path(self, resource: str, name: str = "", group: str = "", *, subresource: str = "") -> str:
        """Give the path of a resource of our namespace; `group` holds the version too: `apps/v1`."""
        root = f"/apis/{group}" if group else "/api/v1"
        parts = [root, "namespaces", self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    async def request(
        self, method: str, path: str, body: Any = None, *, media_type: str = "application/json", **query: Any
    ) -> Reply:
        data = None if body is None else json.dumps(body)
        headers = self.server.headers | {"Content-Type": media_type}
        params = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        async with self._session.request(
            method, self.server.url + path, data=data, headers=headers, params=params, ssl=self.server.tls
        ) as response:
            text = await response.text()
            parsed = json.loads(text) if "json" in response.content_type else text
            return Reply(response.status, parsed, dict(response.headers))

    async def get(self, path: str, **query: Any) -> Reply:
        return await self.request("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.request("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.request("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, media_type: str = MERGE_PATCH, **query: Any) -> Reply:
        return await self.request("PATCH", path, body, media_type=media_type, **query)

    async def apply(self, path: str, body: Any, manager: str, **query: Any) -> Reply:
        return await self.request("PATCH", path, body, media_type=APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Reply:
        return await self.request("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[Events]:
        """Watch a collection; at most half a minute unless the query says otherwise."""
        params = {"watch": "true", "timeoutSeconds": "30"} | {name: str(value) for name, value in query.items()}
        url = self.server.url + path
        async with self._session.get(url, params=params, headers=self.server.headers, ssl=self.server.tls) as response:
            assert response.status == 200, await response.text()
            yield Events(response)
