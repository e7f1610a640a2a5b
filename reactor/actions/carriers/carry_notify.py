"""Carries out Notify, by the notifiers of the settings."""

from __future__ import annotations

from bus.messages import Notify, Outcome
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.execution import ExecutionContext
from reactor.actions.notify import notify


async def carry_out(action: Notify, world: CarrierContext, _context: ExecutionContext) -> Outcome:
    """Do it. What was sent is not sent again."""
    return await notify.carry_out(
        action, world.clock, notifiers=world.notifiers, http=world.http, told=world.told, link=world.link
    )
