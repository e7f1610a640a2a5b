"""The clusters of the settings, each connected when first asked for and then shared by all who ask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from reactor.clients.loading import Loading
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import ClusterSettings

if TYPE_CHECKING:
    from reactor.clients.kubernetes_api import Kubernetes


class Clusters:
    """Name to API. The kubernetes client is imported at the first call, never by who has no cluster."""

    def __init__(self, settings: Mapping[str, ClusterSettings]) -> None:
        self._settings = settings
        self._connected: dict[str, Kubernetes] = {}
        self._connecting = {name: Loading(partial(self._connect, name), what=f"clusters.{name}") for name in settings}

    async def get(self, name: str) -> Kubernetes:
        """Give the cluster's API. One that cannot be connected holds no other up.

        Raises SettingsError where the settings do not name or cannot describe it, ApiUnavailable where that takes long.
        """
        if name in self._connected:
            return self._connected[name]
        if name not in self._settings:
            known = ", ".join(sorted(self._settings)) or "none"
            raise SettingsError(f"clusters.{name}: rules name this cluster, the settings do not (they name: {known})")
        return await self._connecting[name]()

    async def _connect(self, name: str) -> Kubernetes:
        from reactor.clients.kubernetes_api import connect  # 0.6 s: only who has a cluster pays

        api = self._connected[name] = await connect(name, self._settings[name])
        return api

    async def close(self) -> None:
        """Close all connections."""
        for connecting in self._connecting.values():
            await connecting.stop()
        connected, self._connected = self._connected, {}
        for api in connected.values():
            await api.close()
