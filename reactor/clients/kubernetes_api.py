"""Kubernetes APIs. Import it lazily: with the official client it costs 0.3 s and 20 MiB.

Three parts of `kubernetes` 37 are used: its configuration (kubeconfig, exec plugins, in-cluster tokens), and its
ApiClient as an authenticated transport for raw JSON (`api_transport.py`). Its typed models cost eight times the CPU
over 50 clusters, and its asynchronous Watch neither survives a 410, a cut nor an empty answer; `reflector.py` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from reactor.clients.api_refusals import APPLY_PATCH, JSON_PATCH, RefusedRequest
from reactor.clients.api_transport import REQUEST_SECONDS, ApiTransport, timeout_of
from reactor.clients.cluster_credentials import configured_sessions
from reactor.clients.credential_loading import in_thread
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject
from reactor.clients.list_page import ListPage
from reactor.clients.sessions import Purpose
from reactor.clients.shared_watch import SharedWatches
from reactor.settings.server_settings import ClusterSettings

FIELD_MANAGER = "alert-reactor"
PAGE_SECONDS = 60.0  # a page of 500 large objects over a slow line
PAGE_OBJECTS = 500  # client-go's page size
MAX_PAGES = 2000  # a million objects: more is a server that never stops saying "continue"


async def connect(name: str, settings: ClusterSettings) -> Kubernetes:
    """Give the cluster's API, configured but not yet called. Raises SettingsError with what to do."""
    load = in_thread(partial(configured_sessions, name, settings), what=name)
    return Kubernetes(ApiTransport(name, load, await load()))


class Kubernetes:
    """One cluster; implements `port.KubeApi` and `watching.WatchApi`."""

    def __init__(self, transport: ApiTransport) -> None:
        self._transport = transport
        self._watches = SharedWatches(transport.cluster, transport.watch)

    @property
    def cluster(self) -> str:
        return self._transport.cluster

    async def get(self, path: str) -> JsonObject:
        return await self._transport.json("GET", path)

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        items: list[JsonObject] = []
        selected = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {"limit": str(PAGE_OBJECTS)} | {name: value for name, value in selected.items() if value}
        for _ in range(MAX_PAGES):
            page = await self._page(path, query, Purpose.ACT)
            items += _items(path, page)
            if not page.token:
                return items
            query["continue"] = page.token
        raise ApiUnavailable(f"{self._transport.cluster}: GET {path} gave more than {MAX_PAGES} pages")

    async def page(self, path: str, query: Mapping[str, str]) -> ListPage:
        return await self._page(path, query, Purpose.WATCH)

    async def _page(self, path: str, query: Mapping[str, str], purpose: Purpose) -> ListPage:
        request, text = await self._transport.text("GET", path, query=query, seconds=PAGE_SECONDS, purpose=purpose)
        try:
            return ListPage(text)
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered no JSON: {error}") from error

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        # A list, always: the client turns anything else into a strategic merge patch, which custom resources refuse.
        return await self._transport.json(
            "PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=[*operations], content_type=JSON_PATCH
        )

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        return await self._transport.json("POST", path, query={"fieldManager": FIELD_MANAGER}, body=dict(body))

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        meant = {"uid": uid, "resourceVersion": resource_version}
        # Said, because a Job's own default leaves its pods behind.
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if preconditions := {field: value for field, value in meant.items() if value}:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._transport.json("DELETE", path, body=options)

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return await self._transport.json("PATCH", path, query=query, body=dict(body), content_type=APPLY_PATCH)

    async def status(self, path: str, *, seconds: float) -> int:
        request = RefusedRequest(self._transport.cluster, "GET", path, {})
        async with self._transport.any_answer(request, None, timeout_of(seconds), Purpose.PROBE) as response:
            return response.status

    async def date(self) -> datetime | None:
        """Give what time it is there, cut to the second; None: its answers do not say. Raises ApiUnavailable."""
        request = RefusedRequest(self._transport.cluster, "GET", "/version", {})
        async with self._transport.any_answer(request, None, timeout_of(REQUEST_SECONDS), Purpose.ACT) as response:
            text = response.headers.get("Date")
        try:
            return parsedate_to_datetime(text) if text else None
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered with Date {text!r}") from error

    def stream(
        self, path: str, query: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._watches.stream(path, query, idle_seconds=idle_seconds)

    async def close(self) -> None:
        """Close all connections; open watches end."""
        await self._transport.stop_loading()
        await self._watches.close()
        await self._transport.close()


def _items(where: str, page: ListPage) -> list[JsonObject]:
    try:
        return page.items
    except ValueError as error:
        raise ApiUnavailable(f"GET {where} was answered JSON that is no list: {error}") from error
