"""Carries out what a rule with `carrier: Kubernetes` asks for, on the API of each cluster."""

from __future__ import annotations

from bus.messages import CancelEviction, Evict, Outcome, Place, Purge, SetTaints
from reactor.actions.carrier_context import Carried, CarrierContext, guarded
from reactor.actions.execution import ExecutionContext
from reactor.actions.workload import evict, purge, taints
from reactor.actions.workload.place import Placer


async def carry_out(action: Carried, world: CarrierContext, context: ExecutionContext) -> Outcome:
    """Do it. Repeating it is safe."""
    world = guarded(world, context)
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
