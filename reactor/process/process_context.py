"""The parts of a process that all its roles use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bus.jetstream import JetStreamBus
from reactor.audit.signing import Signer
from reactor.fleet.receiver_uptime import ReceiverUptime
from reactor.process.bus_repair import BusReconciler
from reactor.runtime.clock import Clock
from reactor.runtime.supervise import Loops
from reactor.settings.model import Settings

if TYPE_CHECKING:
    import aiohttp

    from reactor.clients.clusters import Clusters
    from reactor.clients.prometheus_api import Prometheus


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Parts of the process that do not depend on the rules."""

    settings: Settings
    clock: Clock
    name: str
    bus: JetStreamBus
    clusters: Clusters
    prometheus: Mapping[str, Prometheus]
    http: aiohttp.ClientSession
    reconciler: BusReconciler
    uptime: ReceiverUptime
    loops: Loops
    """State of the role loops, for /readyz."""
    signer: Signer | None = None
    """Signs the audit; None: the settings have no key for it."""
    in_hands: Counter[str] = field(default_factory=Counter)
    """Number of posts in flight in the routers of this process, by the subject of their source."""
