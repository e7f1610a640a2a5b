"""Carries out SetWeights: on a route of a cluster, or on a load balancer of the settings."""

from __future__ import annotations

from bus.messages import LOAD_BALANCERS, Outcome, SetWeights
from reactor.actions.carrier_context import CarrierContext, guarded
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined, failed
from reactor.actions.traffic import balancer_weights, route_weights
from reactor.runtime.errors import ReactorError, SettingsError


async def carry_out(action: SetWeights, world: CarrierContext, context: ExecutionContext) -> Outcome:
    """Do it. Repeating it is safe."""
    if action.route.kind in LOAD_BALANCERS:
        return await _on_balancer(action, world, context)
    return await _on_route(action, guarded(world, context))


async def _on_balancer(action: SetWeights, world: CarrierContext, context: ExecutionContext) -> Outcome:
    try:
        balancer = world.load_balancers(action.route.name, action.route.kind)
    except SettingsError as error:
        return failed(action.id, world.clock, Declined("UnknownLoadBalancer", str(error)))
    return await balancer_weights.carry_out(balancer, action, world.clock, context)


async def _on_route(action: SetWeights, world: CarrierContext) -> Outcome:
    try:
        api = await world.clusters(action.route.cluster)
    except SettingsError as error:
        return failed(action.id, world.clock, Declined("UnknownCluster", str(error)))
    except ReactorError as error:
        return failed(action.id, world.clock, error)
    return await route_weights.carry_out(
        api, action, world.clock, instance=world.instance, background=world.background, custom=world.route_kinds
    )
