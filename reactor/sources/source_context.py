"""Context of sources: everything they need from outside, handed to each as one value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Protocol

import aiohttp
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bus.messages import Fact
from reactor.clients.balancers.connected import LoadBalancers
from reactor.clients.instant_queries import Queries
from reactor.clients.watching import WatchApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import ClusterSettings
from reactor.sources.refresh import Requests, no_requests
from reactor.sources.republisher import OnFactsLost, no_facts_lost
from rules.rulefile.route_kinds import RouteKinds


class ClusterApis(Protocol):
    """The clusters of the settings; `clients.clusters.Clusters` is it."""

    async def get(self, name: str) -> WatchApi:
        """Give a cluster's API. Raises SettingsError."""
        ...


def scheduler() -> Any:
    """Give the scheduler that paces probes and queries. It is started by who builds the world."""
    # UTC, because it would otherwise look for the machine's time zone, and warn where there is none.
    return AsyncIOScheduler(timezone=UTC)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """One process's surroundings."""

    clock: Clock
    tell: Callable[[Fact], Awaitable[None]]
    """Publishes a fact; Retryable where the bus does not take it now."""
    clusters: ClusterApis
    prometheus: Mapping[str, Queries]
    http: aiohttp.ClientSession
    """Session of HTTP probes: `addresses.probing_session()`."""
    requests: Requests = no_requests
    """Subscription of a source to requests for a fresh look: `refresh.RefreshRequests.hear`."""
    on_facts_lost: OnFactsLost = no_facts_lost
    """Subscription to the loss of facts on the bus: all of them have to be told again."""
    scheduler: Any = field(default_factory=scheduler)
    load_balancers: LoadBalancers = field(default_factory=lambda: LoadBalancers({}, Clock()))
    """Load balancers of the settings."""
    described: Mapping[str, ClusterSettings] = field(default_factory=dict)
    """Settings of each cluster by its name."""
    route_kinds: RouteKinds = field(default_factory=dict)
    """Kinds of routes of the settings."""
    health_scripts: frozenset[str] = frozenset()
    """Languages in which health scripts may run: `lua`, `cel`."""
    preserved: frozenset[str] = frozenset()
    """JSONPaths into a workload's status whose values rules carry over (`statePreservation`)."""

    def prometheus_named(self, name: str) -> Queries:
        """Give a Prometheus of the settings. Raises SettingsError."""
        if name not in self.prometheus:
            known = ", ".join(sorted(self.prometheus)) or "none"
            raise SettingsError(f"prometheus.{name}: rules name it, the settings do not (they name: {known})")
        return self.prometheus[name]
