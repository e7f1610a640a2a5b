"""Port of the reflector to a Kubernetes API, beside the calls of `port.KubeApi`: single pages and open watches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from reactor.clients.kubernetes_port import ApiUnavailable, KubeApi
from reactor.clients.list_page import ListPage


class Expired(ApiUnavailable):
    """410: the server no longer knows this resourceVersion or continue token. List again from the start."""


class Silent(ApiUnavailable):
    """An open watch said nothing, not even that it ends, for longer than it was asked for."""


class WatchApi(KubeApi, Protocol):
    """One cluster that can also be watched."""

    async def page(self, path: str, query: Mapping[str, str]) -> ListPage:
        """Read one page of a list. Raises as KubeApi does, and Expired."""
        ...

    async def status(self, path: str, *, seconds: float) -> int:
        """GET, and give the HTTP status of the answer, whatever it says: for health endpoints.

        Raises ApiUnavailable where nothing answers in time, Forbidden where our credentials cannot be read.
        """
        ...

    def stream(
        self, path: str, query: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch and give its lines as they come; the end of the lines is the end of the watch.

        Raises as KubeApi does, and Expired; Silent after `idle_seconds` without a byte.
        """
        ...
