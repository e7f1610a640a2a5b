"""People who isolate zones, abort, bring zones back and retry by hand, whatever the rule does meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bus.messages import FailbackZone, IsolateZone, RetryZone
from tests.simulation.fleet.people import Speaker
from tests.simulation.fleet.scenario import Order
from tests.simulation.fleet.zones import ZONE


@dataclass(frozen=True, slots=True)
class OrderSeen:
    """One order as it came about. Times are seconds of the loop."""

    order: Order
    given: float
    taken: float
    """Time at which the bus had taken it."""


async def order_zones(speaker: Speaker, orders: tuple[Order, ...], seen: list[OrderSeen]) -> None:
    """Give all orders in their time. `seen`: takes what came about."""
    async with asyncio.TaskGroup() as group:
        for order in orders:
            group.create_task(_order(speaker, order, seen))


async def _order(speaker: Speaker, order: Order, seen: list[OrderSeen]) -> None:
    await speaker.until(order.at)
    given = speaker.time()
    said: dict[str, Any] = {
        "rule": order.name, "zone": ZONE, "by": "ops", "reason": "to be sure", "observed_at": speaker.clock.now(),
    }  # fmt: skip
    if order.what == "isolate":
        await speaker.give(IsolateZone(**said))
    elif order.what == "retry":
        await speaker.give(RetryZone(**said))
    else:
        await speaker.give(FailbackZone(**said, force=order.what == "force-back"))
    seen.append(OrderSeen(order, given, speaker.time()))
