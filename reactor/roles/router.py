"""The router role: what came in from outside becomes facts under the partitions that they concern.

Anybody may publish observations; webhooks are journaled by the receiver; commands are people's words. Any number of
routers share the queue; a message is done when its facts are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from datetime import timedelta
from typing import Protocol

from bus.envelope import decode
from bus.errors import Malformed, Unavailable
from bus.messages import Observation, Pause, Resume, Route, WebhookPost
from bus.port import Bus, Delivery, Work
from bus.topology import INBOX, ROUTERS
from reactor import telemetry
from reactor.failpoints import reach
from reactor.roles.publisher import Publisher

log = logging.getLogger(__name__)

WAIT = timedelta(seconds=1)
BATCH = 200
CONCURRENCY = 64
AGAIN = timedelta(seconds=2)
SWEEP = 1.0
"""How often, in seconds, standing alerts are looked at; each has its own schedule."""


class Alerts(Protocol):
    """What the router asks of the keeper of alerts."""

    def take_post(self, post: WebhookPost) -> Awaitable[None]:
        """Fold one journaled chunk in."""
        ...

    def sweep(self) -> Awaitable[None]:
        """Do what is due: say standing alerts again, confirm resolved ones, reconcile."""
        ...


class Router:
    """Routes what came in."""

    def __init__(self, bus: Bus, publisher: Publisher, alerts: Alerts) -> None:
        self._bus = bus
        self._publisher = publisher
        self._alerts = alerts

    async def run(self) -> None:
        """Route until cancelled."""
        slots = asyncio.Semaphore(CONCURRENCY)
        async with self._bus.work(ROUTERS, batch=BATCH) as work, asyncio.TaskGroup() as group:
            while True:
                for delivery in await work.next(WAIT):
                    await slots.acquire()
                    task = group.create_task(self._one(work, delivery))
                    task.add_done_callback(lambda _: slots.release())

    async def sweep(self) -> None:
        """Look after standing alerts until cancelled."""
        while True:
            await self._alerts.sweep()
            await asyncio.sleep(SWEEP)

    async def _one(self, work: Work, delivery: Delivery) -> None:
        reach("router.taken")
        try:
            await self._route(delivery)
        except Malformed as error:
            telemetry.quarantined.labels(INBOX.name).inc()
            log.warning("message %s on %s is put aside: %s", delivery.sequence, delivery.subject, error)
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            await _later(work, delivery)
            return
        except Exception:
            # A mistake of ours: given again it would stop us again, and everything behind it. It is told in full.
            telemetry.quarantined.labels(INBOX.name).inc()
            log.exception("message %s on %s is put aside", delivery.sequence, delivery.subject)
        reach("router.before-ack")
        await work.done([delivery])

    async def _route(self, delivery: Delivery) -> None:
        event = decode(delivery.body)
        match event.data:
            case WebhookPost() as post:
                await self._alerts.take_post(post)
            case Observation() | Route() | Pause() | Resume() as fact:
                await self._publisher.publish(fact, f"{event.source}/{event.id}", delivery.traceparent)
            case other:
                raise Malformed(f"{type(other).__name__} is nothing that may come in from outside")


async def _later(work: Work, delivery: Delivery) -> None:
    try:
        await work.later(delivery, AGAIN)
    except Unavailable as error:
        log.info("the queue gives the message again by itself: %s", error)
