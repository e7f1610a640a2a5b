"""The executor role: carry actions out. Any number of processes share the queue.

Intent and result are in KV, by revision, per object: an action older than the newest generation is refused, one that
is done is not done again. A step of a zone's isolation is many writes: while it may still be at work in one process, no
other begins what comes after it, or an undo would read the world before the last write of what it undoes. The
acknowledgement is only flow control: the late ack of a paused process silently acknowledges its successor's delivery
(measured), so it must not be the record that work is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from bus import subjects
from bus.errors import BusError, KeyNotFound, Malformed, Refused, Unavailable
from bus.message_admission import read_message
from bus.messages import Action, Notify, Outcome, SetWeights, ZoneStep, iso
from bus.port import Bus, Delivery, KeyValueEntry, Store, WorkQueue
from bus.topology import ACTIONS, EXECUTORS, INTENTS
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import REFUSALS, Declined, Waited
from reactor.execute.authority import action_refusal
from reactor.execute.cancellation import CancellationCheck
from reactor.execute.intent import Intent
from reactor.execute.slots import Slots
from reactor.route.publisher import FactPublisher
from reactor.runtime import telemetry, tracing
from reactor.runtime.clock import Clock
from reactor.runtime.failpoints import reach
from reactor.runtime.quarantine import quarantine, unreadable
from reactor.runtime.tracing import OpenSpan
from rules.engine.observe import NON_FAILURES, WAITED

log = logging.getLogger(__name__)

CarryOut = Callable[[Action, ExecutionContext], Awaitable[Outcome]]
WAIT = timedelta(seconds=1)
EXTEND = 0.3 * EXECUTORS.ack_wait.total_seconds()
"""Actions that take long say so this often, in seconds: twice it may go unheard."""
AGAIN = timedelta(seconds=2)
"""Wait before an action whose intent could not be written is redelivered."""
SOON = timedelta(milliseconds=500)
"""Wait before an action whose decider gave no answer is redelivered: a new owner of its partition may be there by
then."""
AT_ONCE = timedelta(0)
WAITED_MAX = timedelta(seconds=10)
"""Age at which an action that could not be begun leaves the queue; its decider asks for it again a second later."""
IN_HANDS_PER_SLOT = 2
"""More actions than slots are in flight: those of a cluster without a free slot must not hide those of the others."""
DETAIL_MAX = 500
AT_WORK = timedelta(seconds=15)
"""Longest time that a zone's step may be in progress where its process died: 13 s of its call, 2 s to store the
intent."""
IN_HANDS = timedelta(seconds=15)
"""Longest time that a change of weights may be in progress: the 12 s that it has to settle, and a little more."""


UNKNOWN_AGAIN = timedelta(seconds=1)
"""Wait before an action that the rules here do not allow is redelivered: those of another member may."""
UNKNOWN_MAX = timedelta(minutes=10)
"""Longest time that members may differ in their rules; after that the action is quarantined."""


class _AtWork(Exception):
    """Another process may still be writing for the action before this one."""

    def __init__(self, left: timedelta) -> None:
        super().__init__(left)
        self.left = left


class _Unauthorized(Exception):
    """The rules that are known here do not allow the action."""


class Executor:
    """Carries out what the deciders ask for."""

    def __init__(
        self, bus: Bus, clock: Clock, publisher: FactPublisher, carry_out: CarryOut, *, concurrency: int = 16
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._publisher = publisher
        self._carry_out = carry_out
        self._in_hands = IN_HANDS_PER_SLOT * concurrency
        self._hands = asyncio.Semaphore(self._in_hands)
        self._working_on: dict[tuple[int, str], Delivery] = {}
        self._slots = Slots(concurrency, clock, crowded=self._hands.locked)
        self._intents: Store = bus.store(INTENTS)
        # Actions of one concurrency key run one after the other; a lock lives as long as it is held or waited for.
        self._busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self) -> None:
        """Work until cancelled."""
        async with self._bus.work(EXECUTORS, batch=self._in_hands) as work, asyncio.TaskGroup() as group:
            group.create_task(self._extend_all(work))
            while True:
                for delivery in await work.next(WAIT):
                    await self._hands.acquire()
                    task = group.create_task(self._one(work, delivery))
                    task.add_done_callback(lambda _: self._hands.release())

    async def _extend_all(self, work: WorkQueue) -> None:
        """Say again and again that what we hold is being worked on, until cancelled."""
        while True:
            await asyncio.sleep(EXTEND)
            for delivery in [*self._working_on.values()]:
                try:
                    await work.in_progress(delivery)
                except BusError as error:
                    log.info("the bus does not hear that an action is being worked on: %s", error)

    async def _one(self, work: WorkQueue, delivery: Delivery) -> None:
        which = delivery.sequence, delivery.token
        self._working_on[which] = delivery
        try:
            with tracing.span("write", delivery.traceparent, subject=delivery.subject) as span:
                await self._work_on(delivery, span)
            reach("executor.before-ack")
            await work.ack([delivery])
        except _AtWork as wait:
            log.info("waits for the action before it", extra={"subject": delivery.subject})
            await _later(work, delivery, min(wait.left, AGAIN))
        except _Unauthorized as error:
            # Another member may know it: rule files change in one process after the other.
            level = logging.DEBUG if delivery.redelivered else logging.WARNING
            log.log(
                level, "action waits for a member whose rules allow it: %s", error, extra={"subject": delivery.subject}
            )
            await _later(work, delivery, UNKNOWN_AGAIN)
        except Waited as error:
            log.debug("action waits: %s", error, extra={"subject": delivery.subject})
            await _later(work, delivery, SOON if error.after is None else timedelta(seconds=error.after))
        except (Refused, Unavailable) as error:
            log.warning("action waits for the bus: %s", error, extra={"subject": delivery.subject})
            await _later(work, delivery, AGAIN)
        except asyncio.CancelledError:
            await _later(work, delivery, AT_ONCE)  # a clean stop: the next executor takes it up now
            raise
        except Exception:  # a mistake of ours must not end the loop with all that is in flight
            log.exception("action waits: it could not be worked on", extra={"subject": delivery.subject})
            await _later(work, delivery, AGAIN)
        finally:
            del self._working_on[which]

    async def _work_on(self, delivery: Delivery, span: OpenSpan) -> None:
        """Carry out what is asked for; quarantine what cannot be read.

        Raises Refused, Unavailable, Waited, _AtWork: not now.
        """
        try:
            action = read_message(delivery.subject, delivery.body).data
        except Malformed as error:
            quarantine(delivery, ACTIONS, error)
            return
        reach("executor.taken")
        if why := action_refusal(self._publisher.routing, action):
            if self._clock.now() - delivery.stored_at < UNKNOWN_MAX:
                raise _Unauthorized(why)
            quarantine(delivery, ACTIONS, Malformed(why))
            return
        await self._act(action, delivery, span)

    async def _act(self, action: Action, delivery: Delivery, span: OpenSpan) -> None:
        """Carry out and publish the outcome. Raises Refused, Unavailable, Waited where it has to be done again."""
        lock = self._busy.setdefault(_key(action), asyncio.Lock())
        asker = subjects.partition_in(delivery.subject)
        wanted = CancellationCheck(self._bus, self._clock, action, asker, redelivered=delivery.redelivered)
        async with lock:
            try:
                too_late = self._clock.now() - delivery.stored_at >= WAITED_MAX
                outcome = await self._slots.run(action, lambda: self._act_by_intent(action, wanted, too_late=too_late))
            except Waited as error:
                if not too_late:
                    raise
                # Before its decider publishes it again: else ever more of the same would wait here.
                outcome = self._outcome(action, "Failed", reason=WAITED, detail=str(error))
        outcome = outcome.model_copy(update={"rule": action.rule, "object": action.object})
        self._report(action, outcome)
        span.note(
            action=type(action).__name__, id=action.id, rule=action.rule, object=action.object, outcome=outcome.status
        )
        if outcome.status != "Done":
            span.note(failed=f"{outcome.reason}: {outcome.detail}")
        # The delivery's own number: a second try of the same action has an outcome of its own.
        id_ = f"{action.id}/{outcome.status}/{delivery.sequence}"
        # Also where the asking decider reads: this process may not know the rule, or no more.
        await self._publisher.publish(outcome, id_, span.traceparent, also=[asker])
        reach("executor.outcome-published")

    async def _act_by_intent(self, action: Action, wanted: CancellationCheck, *, too_late: bool) -> Outcome:
        """`too_late`: it leaves the queue if it cannot be begun now."""
        if isinstance(action, Notify):
            return await self._write(action, ExecutionContext())  # told twice is better than not told
        key = _key(action)
        try:
            entry = await self._intents.get(key)
        except KeyNotFound:
            known, revision = None, 0
        else:
            known, revision = _readable(entry), entry.revision
        if known is not None and known.is_of(action) and known.done:
            return self._outcome(action, "Done", wrote=False)
        if known is not None and known.is_newer_than(action):
            return self._outcome(action, "Refused", reason="Stale", detail=f"generation {known.generation} is newer")
        now = self._clock.now()
        if known is not None and not known.is_of(action) and (left := known.left(now)) > AT_ONCE:
            raise _AtWork(left)
        try:
            await wanted()
        except Declined as no:
            if known is None or not known.is_of(action) or isinstance(action, ZoneStep):
                return self._outcome(action, "Refused", reason=no.reason, detail=str(no))
            return await self._begun_before(action, no, key, known, revision)
        except Waited as error:
            if not too_late or known is None or not known.is_of(action) or isinstance(action, ZoneStep):
                raise
            # Called off later, it counts as one that was never carried out: so it is looked at before.
            looked = await self._begun_before(action, Declined("CalledOff", str(error)), key, known, revision)
            if looked.status != "Done":
                raise
            return looked
        now = self._clock.now()  # the answer may have taken seconds
        until = iso(now + AT_WORK) if isinstance(action, ZoneStep) else ""
        intent = Intent.of(action, until=until, older=_older(known, action, now), known=known)
        revision = await self._intents.put(key, intent.dump(), revision=revision)
        reach("executor.intent-stored")
        context = ExecutionContext(wanted)
        try:
            outcome = await self._write(action, context)
        except asyncio.CancelledError:
            if until and not context.unanswered:  # a clean stop: what comes after this step need not wait
                await asyncio.shield(self._store_stop(key, intent, revision))
            raise
        if outcome.status == "Done" and not outcome.wrote and intent.has_rival(self._clock.now()):
            # Without a write of ours on the object nothing stops the one before us, which may be on its way.
            return self._outcome(action, "Failed", reason="InProgress", detail="an older action may still be written")
        if outcome.status == "Done" or until:
            rest = replace(intent, done=outcome.status == "Done", until="", older="")
            await self._intents.put(key, rest.dump(), revision=revision)
            reach("executor.done-stored")
        return outcome

    async def _begun_before(self, action: Action, no: Declined, key: str, begun: Intent, revision: int) -> Outcome:
        """Outcome of an action that is no longer wanted, and that was begun: whether it was carried out is not known.

        The carrier looks, and writes nothing. What it finds done is told as done, so that the rule takes it back; a
        zone's step needs none of this, as an undo looks at each object. Raises Waited where it cannot be told.
        """

        async def refuse() -> None:
            raise no

        outcome = await self._write(action, ExecutionContext(refuse))
        if outcome.status == "Done":
            await self._intents.put(key, replace(begun, done=True, until="").dump(), revision=revision)
            return outcome
        if outcome.reason in REFUSALS:
            return self._outcome(action, "Refused", reason=no.reason, detail=str(no))
        raise Waited(f"{no}, and whether it was carried out cannot be seen: {outcome.detail}")

    async def _store_stop(self, key: str, intent: Intent, revision: int) -> None:
        """Store that no process works on it any more."""
        try:
            await self._intents.put(key, replace(intent, until="").dump(), revision=revision)
        except (Refused, Unavailable) as error:
            log.warning("what comes after this step waits for %s: %s", AT_WORK, error, extra={"id": intent.action})

    async def _write(self, action: Action, context: ExecutionContext) -> Outcome:
        reach("executor.before-write")
        try:
            outcome = await self._carry_out(action, context)
        except Exception as error:  # a mistake of ours must not end the loop; the rule's status says it, and retries
            log.exception("could not carry out", extra={"id": action.id})
            return self._outcome(action, "Failed", reason="InternalError", detail=repr(error)[:DETAIL_MAX])
        reach("executor.after-write")
        return outcome

    def _outcome(self, action: Action, status: str, **more: object) -> Outcome:
        return Outcome.model_validate({"action": action.id, "status": status, "observed_at": self._clock.now(), **more})

    def _report(self, action: Action, outcome: Outcome) -> None:
        kind = type(action).__name__
        status = outcome.reason if outcome.reason in NON_FAILURES else outcome.status  # what goes on has not failed
        telemetry.actions.labels(action.rule, kind, status).inc()
        took = (outcome.observed_at - action.decided_at).total_seconds()
        telemetry.action_seconds.labels(kind).observe(max(took, 0.0))
        level = logging.INFO if status == "Done" or status in NON_FAILURES else logging.WARNING
        extra = {"rule": action.rule, "object": action.object, "id": action.id, "reason": outcome.reason}
        log.log(level, "%s: %s %s", status, kind, outcome.detail, extra=extra)


def _readable(entry: KeyValueEntry) -> Intent | None:
    """Give the intent of before; None where it cannot be read: the object itself then says enough."""
    try:
        return Intent.read(entry.value)
    except Malformed as error:
        unreadable(INTENTS.name, entry.key, error)
        return None


def _key(action: Action) -> str:
    """Key of a concurrency key of an object: its actions run one after the other, and are fenced by generation."""
    return subjects.key(action.rule, action.object, *([action.concurrency_key] if action.concurrency_key else []))


def _older(known: Intent | None, action: Action, now: datetime) -> str:
    """Time until which an earlier, unfinished change of weights may still be written, as ISO; empty: there is none."""
    if known is None or known.done or not isinstance(action, SetWeights):
        return ""
    return known.older if known.is_of(action) else iso(now + IN_HANDS)


async def _later(work: WorkQueue, delivery: Delivery, wait: timedelta) -> None:
    try:
        await work.nak(delivery, wait)
    except BusError as error:
        log.info("the queue gives the action again by itself: %s", error)
