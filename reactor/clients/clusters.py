"""The clusters of the settings, each connected when first asked for and then shared by all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from reactor.errors import SettingsError
from reactor.settings import Cluster

if TYPE_CHECKING:
    from reactor.clients.kubernetes import Kubernetes


class Clusters:
    """Name to API. The kubernetes client is imported at the first call, never by who has no cluster."""

    def __init__(self, settings: Mapping[str, Cluster]) -> None:
        self._settings = settings
        self._connected: dict[str, Kubernetes] = {}
        self._connecting = asyncio.Lock()

    async def get(self, name: str) -> Kubernetes:
        """Give the cluster's API. Raises SettingsError where the settings do not name or cannot describe it."""
        async with self._connecting:
            if name not in self._connected:
                self._connected[name] = await self._connect(name)
            return self._connected[name]

    async def _connect(self, name: str) -> Kubernetes:
        if name not in self._settings:
            known = ", ".join(sorted(self._settings)) or "none"
            raise SettingsError(f"clusters.{name}: rules name this cluster, the settings do not (they name: {known})")
        from reactor.clients.kubernetes import connect  # 0.6 s: only who has a cluster pays

        return await connect(name, self._settings[name])

    async def close(self) -> None:
        """Close all connections."""
        connected, self._connected = self._connected, {}
        for api in connected.values():
            await api.close()
