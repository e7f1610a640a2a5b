"""Which carrier carries out which action. A new kind of action is one case here, a new carrier one line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import aiohttp

from bus.messages import (
    LOAD_BALANCERS,
    Action,
    CancelEviction,
    Carrier,
    Evict,
    Notify,
    Outcome,
    Place,
    Purge,
    SetTaints,
    SetWeights,
    ZoneStep,
)
from reactor.actions.background import BackgroundTasks
from reactor.actions.events import CONTROLLER
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.karmada import bindings
from reactor.actions.karmada import cluster_taints as karmada_clusters
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.notify import notify
from reactor.actions.outcomes import Declined, failed
from reactor.actions.traffic import balancer_weights, route_weights
from reactor.actions.workload import evict, purge, taints
from reactor.actions.workload.place import Placer
from reactor.actions.workload.templates import Templates
from reactor.actions.zone import carrier as zones
from reactor.actions.zone.isolation_context import Query, Say, ZoneWorld
from reactor.clients.aws import Ec2, Regions
from reactor.clients.balancers.balancer_port import LoadBalancer
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, SettingsError
from reactor.settings.model import Notifier
from rules.rulefile.route_kinds import RouteKinds

Carried = Place | Evict | Purge | CancelEviction | SetTaints
"""The actions that say who carries them out."""


def _no_load_balancers(name: str, kind: str) -> LoadBalancer:
    raise SettingsError(f"loadBalancers.{name}: a rule names this {kind}, the settings do not")


@dataclass(frozen=True, slots=True)
class CarrierContext:
    """All that actions reach the world through. Made once for each process."""

    clock: Clock
    clusters: Callable[[str], Awaitable[KubeApi]]
    """From a cluster's name to its API, connected at first use. Raises SettingsError where the settings do not tell."""
    notifiers: Mapping[str, Notifier]
    http: aiohttp.ClientSession
    instance: str = CONTROLLER
    """This process's name, as Kubernetes Events show it."""
    told: notify.NotifiedLog = field(default_factory=notify.NotifiedLog)
    background: BackgroundTasks | None = None
    """Does what nobody has to wait for; None: it is waited for."""
    templates: Templates | None = None
    """Remembered copies of workloads, for when their cluster is dead."""
    create_namespaces: bool = False
    """Whether a placement may make the namespace that is missing in its target."""
    karmada: ControlPlane | None = None
    """None: the one that the settings' clusters name `karmada`."""
    ec2: Callable[[str], Awaitable[Ec2]] = field(default_factory=lambda: Regions().get)
    """From a region to its EC2: for zones whose network is cut on AWS."""
    query: Query | None = None
    """Asks a Prometheus of the settings: for zones that are verified by a query."""
    load_balancers: Callable[[str, str], LoadBalancer] = _no_load_balancers
    """From a load balancer's name and kind to it. Raises SettingsError where the settings do not tell."""
    route_kinds: RouteKinds = field(default_factory=dict)
    """Those of the settings."""
    link: Callable[[Notify], Awaitable[str]] | None = None
    """Makes the link by which people approve what a notification asks for; None: the settings have no URL for it."""
    say: Say | None = None
    """Publishes an observation: for zones whose targets our traffic rules are to leave."""


async def carry_out(action: Action, world: CarrierContext, context: ExecutionContext | None = None) -> Outcome:
    """Carry one action out and say what became of it. Repeating it is safe. `context`: what precedes each write.

    Never raises for what the world does. What does come out of here is a mistake of ours, or a cancellation.
    """
    context = context or ExecutionContext()
    match action:
        case SetWeights():
            if action.route.kind in LOAD_BALANCERS:
                return await _set_weights_of_balancer(action, world, context)
            return await _set_weights(action, _guarded(world, context))
        case Place() | Evict() | Purge() | CancelEviction() | SetTaints():
            return await CARRIERS[action.carrier](action, world, context)
        case ZoneStep():
            ways = ZoneWorld(world.clusters, world.ec2, world.query, world.say)
            return await zones.carry_out(action, ways, world.clock, context)
        case Notify():
            return await notify.carry_out(
                action, world.clock, notifiers=world.notifiers, http=world.http, told=world.told, link=world.link
            )


def _guarded(world: CarrierContext, context: ExecutionContext) -> CarrierContext:
    async def clusters(name: str) -> KubeApi:
        return GuardedKube(await world.clusters(name), context)

    return replace(world, clusters=clusters)


async def _by_kubernetes(action: Carried, world: CarrierContext, context: ExecutionContext) -> Outcome:
    world = _guarded(world, context)
    match action:
        case Place():
            placer = Placer(world.clusters, world.clock, world.templates, world.create_namespaces)
            return await placer.carry_out(action)
        case Evict():
            return await evict.carry_out(action, world.clusters, world.clock)
        case Purge():
            return await purge.carry_out(action, world.clusters, world.clock)
        case CancelEviction():
            return await evict.cancel(action, world.clusters, world.clock)
        case SetTaints():
            return taints.carry_out(action, world.clock)


async def _by_karmada(action: Carried, world: CarrierContext, context: ExecutionContext) -> Outcome:
    if isinstance(action, SetTaints):
        return await karmada_clusters.carry_out(action, _plane(world), world.clock, context)
    return await bindings.carry_out(action, _plane(world), world.clock, context)


def _plane(world: CarrierContext) -> ControlPlane:
    return world.karmada or ControlPlane(world.clusters, world.clock)


async def _set_weights_of_balancer(action: SetWeights, world: CarrierContext, context: ExecutionContext) -> Outcome:
    try:
        balancer = world.load_balancers(action.route.name, action.route.kind)
    except SettingsError as error:
        return failed(action.id, world.clock, Declined("UnknownLoadBalancer", str(error)))
    return await balancer_weights.carry_out(balancer, action, world.clock, context)


async def _set_weights(action: SetWeights, world: CarrierContext) -> Outcome:
    try:
        api = await world.clusters(action.route.cluster)
    except SettingsError as error:
        return failed(action.id, world.clock, Declined("UnknownCluster", str(error)))
    except ReactorError as error:
        return failed(action.id, world.clock, error)
    return await route_weights.carry_out(
        api, action, world.clock, instance=world.instance, background=world.background, custom=world.route_kinds
    )


CARRIERS: Mapping[Carrier, Callable[[Carried, CarrierContext, ExecutionContext], Awaitable[Outcome]]] = {
    "Kubernetes": _by_kubernetes,
    "Karmada": _by_karmada,
}
"""Who carries out what a rule's `carrier` names: one line for each word of `Carrier`."""
