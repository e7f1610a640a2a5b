"""The router role: what came in from outside becomes facts under the partitions that they concern.

Anybody may publish observations; webhooks are journaled by the receiver; commands are people's words. Any number of
routers share the queue; a message is done when its facts are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, get_args

from bus import subjects
from bus.admission import read
from bus.errors import Malformed, Unavailable
from bus.messages import AnyCommand, Command, DecisionRecord, Inventory, Observation, WebhookPost
from bus.port import Bus, Delivery, Outgoing, Work
from bus.topology import INBOX, PARKED, PARKED_POSTS, ROUTERS, Queue, Stream
from reactor import telemetry
from reactor.audit.chain import Chain, Entry
from reactor.clock import Clock
from reactor.errors import SourceUnknown
from reactor.failpoints import reach
from reactor.roles.publisher import Publisher
from reactor.roles.quarantine import put_aside
from reactor.roles.spoken import Spoken

log = logging.getLogger(__name__)

WAIT = timedelta(seconds=1)
BATCH = 200
CONCURRENCY = 64
AGAIN = timedelta(seconds=2)
FROM_OUTSIDE = (Observation, *get_args(Inventory), *get_args(AnyCommand))
"""What anybody may say. Outcomes, claims and verdicts are the reactor's own."""
AHEAD = timedelta(seconds=2)
"""By so much another's clock may be ahead of the bus's, unnoticed: what we do not trust of our own (decision 0012)."""
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

    def __init__(
        self,
        bus: Bus,
        publisher: Publisher,
        alerts: Alerts,
        clock: Clock,
        *,
        targets_max: Mapping[str, int] | None = None,
    ) -> None:
        """`targets_max`: of how many targets the sources of the rules may speak, by their names."""
        self._targets = Spoken(targets_max or {}, clock)
        self._bus = bus
        self._publisher = publisher
        self._alerts = alerts
        self._audit = Chain(bus, subjects.COMMANDS)

    async def run(self) -> None:
        """Route until cancelled. Raises Unavailable."""
        await self._serve(ROUTERS, INBOX)

    async def run_parked(self) -> None:
        """Route posts whose source became known, until cancelled. Raises Unavailable."""
        await self._serve(PARKED_POSTS, PARKED)

    async def _serve(self, queue: Queue, stream: Stream) -> None:
        slots = asyncio.Semaphore(CONCURRENCY)
        async with self._bus.work(queue, batch=BATCH) as work, asyncio.TaskGroup() as group:
            while True:
                for delivery in await work.next(WAIT):
                    await slots.acquire()
                    task = group.create_task(self._one(work, stream, delivery))
                    task.add_done_callback(lambda _: slots.release())

    async def sweep(self) -> None:
        """Look after standing alerts until cancelled."""
        while True:
            await self._alerts.sweep()
            await asyncio.sleep(SWEEP)

    async def _one(self, work: Work, stream: Stream, delivery: Delivery) -> None:
        reach("router.taken")
        try:
            await self._routed_or_parked(delivery, stream)
        except Malformed as error:
            put_aside(delivery, stream, error)
        except SourceUnknown as error:
            log.info("a parked post waits: %s", error)
            await _later(work, delivery)
            return
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            await _later(work, delivery)
            return
        except Exception:
            # A mistake of ours: given again it would stop us again, and everything behind it. It is told in full.
            telemetry.quarantined.labels(stream.name).inc()
            log.exception("message %s on %s is put aside", delivery.sequence, delivery.subject)
        reach("router.before-ack")
        await work.done([delivery])

    async def _routed_or_parked(self, delivery: Delivery, stream: Stream) -> None:
        """Windows wait for all that is in the inbox, so a post for a source that is unknown here waits elsewhere."""
        try:
            await self._route(delivery)
        except SourceUnknown:
            if stream is PARKED:
                raise
            source = read(delivery.subject, delivery.body).data.source
            log.info(
                "message %s waits for rules that name its source",
                delivery.sequence,
                extra={"subject": delivery.subject},
            )
            # One id for the message, however often it is given out.
            id_ = f"parked/{delivery.stored_at.timestamp()}/{delivery.sequence}"
            await self._bus.publish(
                Outgoing(subjects.parked(source), delivery.body, id_, traceparent=delivery.traceparent)
            )

    async def _route(self, delivery: Delivery) -> None:
        event = read(delivery.subject, delivery.body)
        # The id begins with the subject: no publisher can take the id of a fact of another's.
        id_ = f"{delivery.subject}/{event.source}/{event.id}"
        match event.data:
            case WebhookPost() as post:
                await self._alerts.take_post(post)
            case fact if isinstance(fact, FROM_OUTSIDE):
                if not isinstance(fact, Command) and not self._targets.admits(delivery.subject, fact.about):
                    return
                fact = _not_from_the_future(fact, delivery.stored_at)
                if isinstance(fact, Command):
                    fact = fact.model_copy(update={"user": subjects.user_in(delivery.subject)})
                await self._publisher.publish(fact, id_, delivery.traceparent)
                if isinstance(fact, Command):
                    await self._audit.write_among_others(_audited(fact, id_))
            case other:
                raise Malformed(f"{type(other).__name__} is nothing that may come in from outside")


def _not_from_the_future(fact: Any, stored_at: datetime) -> Any:
    """A source whose clock is ahead has seen it when it said it: dated later, it would outlast what it says next."""
    return fact.model_copy(update={"observed_at": stored_at}) if fact.observed_at - stored_at > AHEAD else fact


def _audited(command: Command, id_: str) -> Entry:
    """Whatever comes of a person's word, the audit says that it was given: by whom, when, and why."""
    record = DecisionRecord(
        rule=command.rule, object=str(getattr(command, "object", None) or getattr(command, "zone", "*")),
        decided_at=command.observed_at, facts=(command.model_dump(mode="json"),),
        because=(f"{command.who} said {type(command).__name__}{_length(command)}: {command.reason}",),
    )  # fmt: skip
    return Entry(record, f"command/{id_}", "/reactor/router")


def _length(command: Command) -> str:
    seconds = getattr(command, "for_seconds", None)
    return f" for {seconds:g} s" if seconds is not None else ""


async def _later(work: Work, delivery: Delivery) -> None:
    try:
        await work.later(delivery, AGAIN)
    except Unavailable as error:
        log.info("the queue gives the message again by itself: %s", error)
