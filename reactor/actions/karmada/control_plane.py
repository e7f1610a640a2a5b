"""The Karmada control plane that carriers write to: by the settings, and first asked whether it acts by itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from reactor.actions.karmada.switches import refuse_to_fight
from reactor.actions.workload.copy_sources import ClusterLookup
from reactor.actions.workload.reports import connected
from reactor.clients.kubernetes_port import Forbidden, KubeApi, NotFound
from reactor.runtime.clock import Clock

LOOK_SECONDS = 600.0
"""Seconds for which switches that are off are assumed to stay so: they change with a restart of Karmada, not by the
minute."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ControlPlane:
    """One control plane, by the names of its clusters in the settings."""

    clusters: ClusterLookup
    clock: Clock
    name: str = "karmada"
    """Name of the cluster whose API holds the bindings, policies and Cluster objects."""
    host: str = ""
    """Name of the cluster in which Karmada's components run; empty: on the same API, or not known."""
    _looked_at: float | None = field(default=None, repr=False)

    async def api(self) -> KubeApi:
        """Give its API. Raises Declined (UnknownCluster), and as KubeApi does."""
        return await connected(self.clusters, self.name)

    async def ours_to_move(self) -> KubeApi:
        """Give its API, if Karmada does not move workloads by itself. Raises as `api` does, and KarmadaFights."""
        api = await self.api()
        now = self.clock.monotonic()
        if self._looked_at is None or now - self._looked_at >= LOOK_SECONDS:
            await self._look(await connected(self.clusters, self.host) if self.host else api)
            self._looked_at = now
        return api

    async def _look(self, host: KubeApi) -> None:
        try:
            await refuse_to_fight(host)
        except (NotFound, Forbidden) as error:
            # Most control planes do not show their own Deployment; then the operator's word has to do.
            _log.warning(
                "cannot see whether Karmada fails over by itself; set karmada.host to the cluster that it runs in",
                extra={"cluster": host.cluster, "reason": str(error)},
            )
