"""Context of carriers: all that actions reach the world through; and the actions whose rule names the carrier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import aiohttp

from bus.messages import CancelEviction, Evict, Notify, Place, Purge, SetTaints
from reactor.actions.background import BackgroundTasks
from reactor.actions.events import CONTROLLER
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.notify import notify
from reactor.actions.workload.templates import Templates
from reactor.actions.zone.isolation_context import QueryPrometheus, Say
from reactor.clients.aws import Ec2, Regions
from reactor.clients.balancers.balancer_port import LoadBalancer
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.notifier_settings import Notifier
from rules.rulefile.route_kinds import RouteKinds

Carried = Place | Evict | Purge | CancelEviction | SetTaints
"""The actions that say who carries them out."""


def _no_load_balancers(name: str, kind: str) -> LoadBalancer:
    raise SettingsError(f"loadBalancers.{name}: a rule names this {kind}, the settings do not")


@dataclass(frozen=True, slots=True)
class CarrierContext:
    """Connections and settings through which actions reach the world. Made once for each process."""

    clock: Clock
    clusters: Callable[[str], Awaitable[KubeApi]]
    """Gives the API of a cluster by its name, connected at first use. Raises SettingsError where the settings do not
    tell."""
    notifiers: Mapping[str, Notifier]
    http: aiohttp.ClientSession
    instance: str = CONTROLLER
    """Name of this process, as Kubernetes Events show it."""
    told: notify.NotifiedLog = field(default_factory=notify.NotifiedLog)
    background: BackgroundTasks | None = None
    """Runs work that no action has to wait for; None: the action waits for it."""
    templates: Templates | None = None
    """Remembered copies of workloads, for when their cluster is dead."""
    create_namespaces: bool = False
    """True if a placement may make the namespace that is missing in its target."""
    karmada: ControlPlane | None = None
    """Karmada's control plane; None: the one that the settings' clusters name `karmada`."""
    ec2: Callable[[str], Awaitable[Ec2]] = field(default_factory=lambda: Regions().get)
    """Gives the EC2 of a region: for zones whose network is cut on AWS."""
    query: QueryPrometheus | None = None
    """Asks a Prometheus of the settings: for zones that are verified by a query."""
    load_balancers: Callable[[str, str], LoadBalancer] = _no_load_balancers
    """Gives a load balancer by its name and kind. Raises SettingsError where the settings do not tell."""
    route_kinds: RouteKinds = field(default_factory=dict)
    """Kinds of routes of the settings."""
    link: Callable[[Notify], Awaitable[str]] | None = None
    """Makes the link by which people approve what a notification asks for; None: the settings have no URL for it."""
    say: Say | None = None
    """Publishes an observation: for zones whose targets our traffic rules are to leave."""


def guarded(world: CarrierContext, context: ExecutionContext) -> CarrierContext:
    """The same, with what precedes each write in front of each cluster."""

    async def clusters(name: str) -> KubeApi:
        return GuardedKube(await world.clusters(name), context)

    return replace(world, clusters=clusters)
