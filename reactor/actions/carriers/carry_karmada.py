"""Carries out what a rule with `carrier: Karmada` asks for, on the control plane."""

from __future__ import annotations

from bus.messages import Outcome, SetTaints
from reactor.actions.carrier_context import Carried, CarrierContext
from reactor.actions.execution import ExecutionContext
from reactor.actions.karmada import bindings
from reactor.actions.karmada import cluster_taints as karmada_clusters
from reactor.actions.karmada.control_plane import ControlPlane


async def carry_out(action: Carried, world: CarrierContext, context: ExecutionContext) -> Outcome:
    """Do it. Repeating it is safe."""
    plane = world.karmada or ControlPlane(world.clusters, world.clock)
    if isinstance(action, SetTaints):
        return await karmada_clusters.carry_out(action, plane, world.clock, context)
    return await bindings.carry_out(action, plane, world.clock, context)
