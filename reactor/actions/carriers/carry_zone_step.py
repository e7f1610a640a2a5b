"""Carries out ZoneStep, on Kubernetes or Gardener."""

from __future__ import annotations

from bus.messages import Outcome, ZoneStep
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.execution import ExecutionContext
from reactor.actions.zone import carrier as zones
from reactor.actions.zone.isolation_context import ZoneWorld


async def carry_out(action: ZoneStep, world: CarrierContext, context: ExecutionContext) -> Outcome:
    """Do it. Repeating it is safe."""
    ways = ZoneWorld(world.clusters, world.ec2, world.query, world.say)
    return await zones.carry_out(action, ways, world.clock, context)
