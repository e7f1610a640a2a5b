"""The router role: what came in from outside becomes facts under the partitions that they concern.

Every source may publish observations; webhooks are journaled by the receiver; commands are people's words. Any number
of routers share the queue; a message is done when its facts are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, get_args

from bus import subjects
from bus.envelope import DECODED_BYTES_MAX, Event
from bus.errors import Malformed, Unavailable
from bus.message_admission import read_message
from bus.messages import AnyCommand, Command, Inventory, Observation, WebhookPost
from bus.port import Bus, Delivery, Outgoing, WorkQueue
from bus.topology import INBOX, PARKED, PARKED_POSTS, ROUTERS, Queue, Stream
from reactor.audit.command_records import audited
from reactor.audit.shared_chain import SharedChain
from reactor.audit.signing import Signer
from reactor.route.excess import ExcessRouter, packed
from reactor.route.pace import AT_ONCE, BACKLOG, Pace
from reactor.route.publisher import FactPublisher
from reactor.route.spoken import Spoken
from reactor.runtime import tracing
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SourceUnknown
from reactor.runtime.failpoints import reach
from reactor.runtime.quarantine import failed, quarantine
from reactor.runtime.slices import sliced
from rules.rulefile.sources import TARGETS_MAX

log = logging.getLogger(__name__)

WAIT = timedelta(seconds=5)
SOON = timedelta(seconds=1)
"""Longest wait for more of what is to be put off, before it is stored."""
BATCH = 200
"""Messages in hand at once. With 512 an observation costs one process a quarter less, and each of four that share two
cores a third more: what waits for half a second is extended."""
CONCURRENCY = 64
PARKED_AT_ONCE = 1
"""Parked posts that are routed at once: the alerts of others wait behind these, and behind their facts. With two, an
alert of another source was decided after 1.1 s of the processor, with one after 0.7 s (means)."""
UNREAD_MAX = 100
"""Facts that our deciders have not read above which a routed post still counts as in flight, and no parked post is
taken: what other sources say would wait behind its facts."""
UNREAD_SECONDS = 5.0
"""Deciders that do not read hold up a source's next post for no longer."""
UNREAD_LOOK_SECONDS = 0.02
AGAIN = timedelta(seconds=2)
FROM_OUTSIDE = (Observation, *get_args(Inventory), *get_args(AnyCommand))
"""Messages that every publisher may send. Outcomes, acquire requests and replies are the reactor's own."""
AHEAD = timedelta(seconds=2)
"""Difference by which another's clock may be ahead of the bus's, unnoticed: what we do not trust of our own (decision
0012)."""
SWEEP = 1.0
"""Seconds between two looks at standing alerts; each has its own schedule."""


class Alerts(Protocol):
    """The part of the keeper of alerts that the router uses."""

    def take_post(self, post: WebhookPost) -> Awaitable[None]:
        """Fold one journaled chunk in."""
        ...

    def sweep(self) -> Awaitable[None]:
        """Do what is due: say standing alerts again, confirm resolved ones, reconcile."""
        ...

    def wait(self, seconds: float) -> Awaitable[None]:
        """Wait so long, or until something is due at once."""
        ...


class Router:
    """Routes what came in."""

    def __init__(
        self,
        bus: Bus,
        publisher: FactPublisher,
        alerts: Alerts,
        clock: Clock,
        *,
        targets_max: Mapping[str, int] | None = None,
        targets_of_others_max: int = TARGETS_MAX,
        at_once: int = AT_ONCE,
        signer: Signer | None = None,
        in_hands: Counter[str] | None = None,
        unread: Callable[[], int] = lambda: 0,
    ) -> None:
        """`in_hands`: kept up to date with how many posts of each source are being routed, or were routed and are not
        read by our deciders, by their subject. `unread`: how many facts those have not read.

        `targets_max`: of how many targets the sources of the rules may speak, by their names;
        `targets_of_others_max`: each of the others. `at_once`: how much one publisher may say at once.
        `signer`: signs the audit of people's words.
        """
        self._targets = Spoken(targets_max or {}, clock, others_max=targets_of_others_max)
        self._pace = Pace(at_once, clock)
        self._clock = clock
        self._in_hands = in_hands if in_hands is not None else Counter()
        self._unread = unread
        self._bus = bus
        self._publisher = publisher
        self._alerts = alerts
        self._audit = SharedChain(bus, signer)

    async def run(self) -> None:
        """Route until cancelled. Raises Unavailable."""
        await self._serve(ROUTERS, INBOX, BATCH, CONCURRENCY)

    async def run_parked(self) -> None:
        """Route posts that wait, until cancelled: large ones, those of unknown sources. Raises Unavailable."""
        await self._serve(PARKED_POSTS, PARKED, PARKED_AT_ONCE, PARKED_AT_ONCE)

    @property
    def excess(self) -> ExcessRouter:
        """Routes what publishers say too fast."""
        return ExcessRouter(self._bus, self._messages, self._clock, lambda: self._pace.behind)

    async def _serve(self, queue: Queue, stream: Stream, batch: int, concurrency: int) -> None:
        slots = asyncio.Semaphore(concurrency)
        async with self._bus.work(queue, batch=batch) as work, asyncio.TaskGroup() as group:
            over: list[Delivery] = []
            while True:
                together: list[tuple[Delivery, Sequence[Outgoing]]] = []
                taken = await work.next(SOON if over else WAIT)
                async for delivery in sliced(taken):
                    reach("router.taken")
                    if not self._pace.admits(delivery):
                        over.append(delivery)
                        continue
                    if (messages := self._forwarded(delivery)) is not None:
                        together.append((delivery, messages))
                        continue
                    await slots.acquire()
                    self._in_hands[delivery.subject] += 1
                    task = group.create_task(self._in_hand(work, stream, delivery, slots))
                    task.add_done_callback(partial(self._over, delivery.subject))
                if over and (len(over) >= BATCH / 2 or not taken or taken[-1].pending < BACKLOG):
                    await slots.acquire()
                    over, putting_off = [], over
                    task = group.create_task(self._put_off(work, putting_off))
                    task.add_done_callback(lambda _: slots.release())
                if together:
                    await slots.acquire()
                    task = group.create_task(self._many(work, stream, together))
                    task.add_done_callback(lambda _: slots.release())

    async def _in_hand(self, work: WorkQueue, stream: Stream, delivery: Delivery, slots: asyncio.Semaphore) -> None:
        """Route it, and return when our deciders have room for more: until then its source has it in hand."""
        try:
            if stream is PARKED:
                await self._deciders_have_room()
            await self._one(work, stream, delivery)
        finally:
            slots.release()
        await self._deciders_have_room()

    def _over(self, subject: str, _: object) -> None:
        self._in_hands[subject] -= 1

    async def _deciders_have_room(self) -> None:
        until = self._clock.monotonic() + UNREAD_SECONDS
        while self._unread() > UNREAD_MAX and self._clock.monotonic() < until:  # noqa: ASYNC110 - many tasks' count
            await asyncio.sleep(UNREAD_LOOK_SECONDS)

    async def sweep(self) -> None:
        """Look after standing alerts until cancelled."""
        while True:
            await self._alerts.sweep()
            await self._alerts.wait(SWEEP)

    def _forwarded(self, delivery: Delivery) -> Sequence[Outgoing] | None:
        """Give the messages of what is only passed on; None: a command, a post, or what cannot be read."""
        try:
            event = read_message(delivery.subject, delivery.body)
            return None if isinstance(event.data, Command | WebhookPost) else self._messages(delivery, event)
        except Exception:  # noqa: BLE001 - met again where it is routed alone, which tells of it
            return None

    async def _many(
        self, work: WorkQueue, stream: Stream, together: Sequence[tuple[Delivery, Sequence[Outgoing]]]
    ) -> None:
        """Pass on what came with one pull in one round: a round costs as much as a message."""
        deliveries = [delivery for delivery, _ in together]
        try:
            await self._bus.publish_all([message for _, messages in together for message in messages])
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            for delivery in deliveries:
                await _later(work, delivery)
            return
        except Exception:  # noqa: BLE001 - one of them: each alone, so that it harms no other, and is told of
            for delivery in deliveries:
                await self._one(work, stream, delivery)
            return
        await _done(work, deliveries)

    async def _put_off(self, work: WorkQueue, deliveries: Sequence[Delivery]) -> None:
        try:
            await self._bus.publish_all(packed(deliveries))
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            for delivery in deliveries:
                await _later(work, delivery)
        else:
            await _done(work, deliveries)

    async def _one(self, work: WorkQueue, stream: Stream, delivery: Delivery) -> None:
        try:
            with tracing.span("route", delivery.traceparent, subject=delivery.subject):
                await self._routed_or_parked(delivery, stream)
        except Malformed as error:
            quarantine(delivery, stream, error)
        except SourceUnknown as error:
            log.info("a parked post waits: %s", error)
            await _later(work, delivery)
            return
        except Unavailable as error:
            log.warning("routing waits for the bus: %s", error)
            await _later(work, delivery)
            return
        except Exception as error:  # noqa: BLE001 - a mistake of ours: given again it would stop us, and all behind it
            failed(delivery, stream, error)
        await _done(work, [delivery])

    async def _routed_or_parked(self, delivery: Delivery, stream: Stream) -> None:
        """Windows wait for all that is in the inbox, so a post for a source that is unknown here waits elsewhere."""
        try:
            await self._route(delivery)
        except SourceUnknown:
            if stream is PARKED:
                raise
            source = read_message(delivery.subject, delivery.body).data.source
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
        event = read_message(delivery.subject, delivery.body)
        if isinstance(event.data, WebhookPost):
            await self._alerts.take_post(event.data)
        else:
            await self._bus.publish_all(self._messages(delivery, event))
        if isinstance(event.data, Command):
            command = event.data.model_copy(update={"user": subjects.user_in(delivery.subject)})
            await self._audit.write(audited(command, _id(delivery, event)))

    def _messages(self, delivery: Delivery, event: Event) -> Sequence[Outgoing]:
        """Give the messages that carry what is said; none where no rule wants it. Raises Malformed."""
        fact = event.data
        if not isinstance(fact, FROM_OUTSIDE):
            raise Malformed(f"{type(fact).__name__} is nothing that may come in from outside")
        if isinstance(fact, Command):
            fact = fact.model_copy(update={"user": subjects.user_in(delivery.subject)})
        elif not self._targets.admits(delivery.subject, fact.about):
            return ()
        fact = _not_from_the_future(fact, delivery.stored_at)
        as_it_came = fact is event.data and len(delivery.body) <= DECODED_BYTES_MAX
        body = delivery.body if as_it_came else None  # of a long one, what is not read is not stored again and again
        return self._publisher.messages(fact, _id(delivery, event), delivery.traceparent, body=body)


def _id(delivery: Delivery, event: Event) -> str:
    """The id begins with the subject: no publisher can take the id of a fact of another's."""
    return f"{delivery.subject}/{event.source}/{event.id}"


def _not_from_the_future(fact: Any, stored_at: datetime) -> Any:
    """A source whose clock is ahead has seen it when it said it: dated later, it would outlast what it says next."""
    return fact.model_copy(update={"observed_at": stored_at}) if fact.observed_at - stored_at > AHEAD else fact


async def _done(work: WorkQueue, deliveries: Sequence[Delivery]) -> None:
    reach("router.before-ack")
    await work.ack(deliveries)


async def _later(work: WorkQueue, delivery: Delivery) -> None:
    try:
        await work.nak(delivery, AGAIN)
    except Unavailable as error:
        log.info("the queue gives the message again by itself: %s", error)
