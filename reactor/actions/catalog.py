"""Which carrier carries out which action. A new kind of action is one case here; a new carrier is found by its word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import get_args

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
from reactor.actions.carrier_context import Carried, CarrierContext, guarded
from reactor.actions.execution import ExecutionContext
from reactor.actions.notify import notify
from reactor.actions.outcomes import Declined, failed
from reactor.actions.traffic import balancer_weights, route_weights
from reactor.actions.zone import carrier as zones
from reactor.actions.zone.isolation_context import ZoneWorld
from reactor.runtime.errors import ReactorError, SettingsError

Carry = Callable[[Carried, CarrierContext, ExecutionContext], Awaitable[Outcome]]


def _carrier(word: str) -> Carry:
    folder = f"reactor.actions.{word.lower()}"
    if find_spec(folder) is None or find_spec(f"{folder}.carrier") is None:
        raise LookupError(f"carrier {word}: no {folder.replace('.', '/')}/carrier.py carries out what it is asked for")
    carry: Carry = import_module(f"{folder}.carrier").carry_out
    return carry


CARRIERS: Mapping[Carrier, Carry] = {word: _carrier(word) for word in get_args(Carrier)}
"""Who carries out what a rule's `carrier` names: the folder of that name, for each word of `Carrier`."""


async def carry_out(action: Action, world: CarrierContext, context: ExecutionContext | None = None) -> Outcome:
    """Carry one action out and say what became of it. Repeating it is safe. `context`: what precedes each write.

    Never raises for what the world does. What does come out of here is a mistake of ours, or a cancellation.
    """
    context = context or ExecutionContext()
    match action:
        case SetWeights():
            if action.route.kind in LOAD_BALANCERS:
                return await _set_weights_of_balancer(action, world, context)
            return await _set_weights(action, guarded(world, context))
        case Place() | Evict() | Purge() | CancelEviction() | SetTaints():
            return await CARRIERS[action.carrier](action, world, context)
        case ZoneStep():
            ways = ZoneWorld(world.clusters, world.ec2, world.query, world.say)
            return await zones.carry_out(action, ways, world.clock, context)
        case Notify():
            return await notify.carry_out(
                action, world.clock, notifiers=world.notifiers, http=world.http, told=world.told, link=world.link
            )


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
