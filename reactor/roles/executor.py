"""The executor role: carry actions out. Any number of processes share the queue.

Intent and result stand in KV, by revision, per object: an action older than the newest generation is refused, one that
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
from bus.envelope import decode
from bus.errors import BusError, Malformed, NotFound, Refused, Unavailable
from bus.messages import Action, Notify, Outcome, SetWeights, ZoneStep, iso
from bus.port import Bus, Delivery, Store, Work
from bus.topology import ACTIONS, EXECUTORS, GROUPS, INTENTS
from reactor import telemetry
from reactor.clock import Clock
from reactor.failpoints import reach
from reactor.roles.intent import Intent
from reactor.roles.publisher import Publisher
from reactor.roles.quarantine import put_aside
from reactor.roles.wanted import Wanted
from rules.engine.observe import GOES_ON, WAITED

log = logging.getLogger(__name__)

CarryOut = Callable[[Action], Awaitable[Outcome]]
WAIT = timedelta(seconds=1)
EXTEND = EXECUTORS.ack_wait.total_seconds() / 3
"""An action that takes long says so this often, in seconds: twice it may go unheard."""
AGAIN = timedelta(seconds=2)
"""How long an action waits whose intent could not be written."""
AT_ONCE = timedelta(0)
WAITED_MAX = EXECUTORS.ack_wait + timedelta(seconds=2)
"""What has waited for longer, in the queue and not in the hands of a process that died, is not begun: while the bus was
away its decider heard nothing. It is asked whether it still wants it, and by then has read what was said before."""
DETAIL_MAX = 500
AT_WORK = timedelta(seconds=45)
"""How long a zone's step may be at work: its call's 13 s, and the 30 s that boto3 may take over a write in flight."""
IN_HANDS = timedelta(seconds=15)
"""How long a change of weights may be at work: the 12 s that it has to settle, and a little more."""


class _AtWork(Exception):
    """Another process may still be writing for the action before this one."""

    def __init__(self, left: timedelta) -> None:
        super().__init__(left)
        self.left = left


class Executor:
    """Carries out what the deciders ask for."""

    def __init__(
        self, bus: Bus, clock: Clock, publisher: Publisher, carry_out: CarryOut, *, concurrency: int = 16
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._publisher = publisher
        self._carry_out = carry_out
        self._concurrency = concurrency
        self._intents: Store = bus.store(INTENTS)
        self._wanted = Wanted(bus.store(GROUPS), publisher.routing, publisher.partitions)
        # Actions of one lane one after the other; a lock lives as long as somebody holds or waits for it.
        self._busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self) -> None:
        """Work until cancelled."""
        slots = asyncio.Semaphore(self._concurrency)
        async with self._bus.work(EXECUTORS, batch=self._concurrency) as work, asyncio.TaskGroup() as group:
            while True:
                for delivery in await work.next(WAIT):
                    await slots.acquire()
                    task = group.create_task(self._one(work, delivery))
                    task.add_done_callback(lambda _: slots.release())

    async def _one(self, work: Work, delivery: Delivery) -> None:
        extending = asyncio.create_task(_extend(work, delivery))
        try:
            await self._worked(delivery)
            reach("executor.before-ack")
            await work.done([delivery])
        except _AtWork as wait:
            log.info("waits for the action before it", extra={"subject": delivery.subject})
            await _later(work, delivery, min(wait.left, AGAIN))
        except (Refused, Unavailable) as error:
            log.warning("action waits for the bus: %s", error, extra={"subject": delivery.subject})
            await _later(work, delivery, AGAIN)
        except asyncio.CancelledError:
            await _later(work, delivery, AT_ONCE)  # a clean stop: the next executor takes it up now
            raise
        except Exception:
            # A mistake of ours must not end the loop with all that is in hands.
            log.exception("action waits: it could not be worked on", extra={"subject": delivery.subject})
            await _later(work, delivery, AGAIN)
        finally:
            extending.cancel()

    async def _worked(self, delivery: Delivery) -> None:
        """Do what is asked for; put aside what cannot be read. Raises Refused, Unavailable, _AtWork: not now."""
        try:
            action = decode(delivery.body).data
        except Malformed as error:
            put_aside(delivery, ACTIONS, error)
            return
        reach("executor.taken")
        await self._acted(action, delivery)

    async def _acted(self, action: Action, delivery: Delivery) -> None:
        """Carry out and publish the outcome. Raises Refused, Unavailable where it has to be done again."""
        lock = self._busy.setdefault(_key(action), asyncio.Lock())
        async with lock:
            outcome = await self._fenced(action, delivery.stored_at)
        outcome = outcome.model_copy(update={"rule": action.rule, "object": action.object})
        self._report(action, outcome)
        # The delivery's own number: a second try of the same action has an outcome of its own.
        id_ = f"{action.id}/{outcome.status}/{delivery.sequence}"
        # Also where the asking decider reads: this process may not know the rule, or no more.
        asker = subjects.partition_in(delivery.subject)
        await self._publisher.publish(outcome, id_, delivery.traceparent, also=[asker])
        reach("executor.outcome-published")

    async def _fenced(self, action: Action, asked_at: datetime) -> Outcome:
        if isinstance(action, Notify):
            return await self._write(action)  # told twice is better than not told
        key = _key(action)
        try:
            entry = await self._intents.get(key)
        except NotFound:
            known, revision = None, 0
        else:
            known, revision = Intent.read(entry.value), entry.revision
        if known is not None and known.is_of(action) and known.done:
            return self._outcome(action, "Done", wrote=False)
        if known is not None and known.is_newer_than(action):
            return self._outcome(action, "Refused", reason="Stale", detail=f"generation {known.generation} is newer")
        now = self._clock.now()
        if known is not None and not known.is_of(action) and (left := known.left(now)) > AT_ONCE:
            raise _AtWork(left)
        if (why := await self._wanted.called_off(action, now)) is not None:
            return self._outcome(action, "Refused", reason="CalledOff", detail=why[:DETAIL_MAX])
        if (waited := now - asked_at) > WAITED_MAX:
            return self._outcome(action, "Failed", reason=WAITED, detail=f"for {waited.total_seconds():.0f} s")
        until = iso(now + AT_WORK) if isinstance(action, ZoneStep) else ""
        intent = Intent.of(action, until=until, older=_older(known, action, now))
        revision = await self._intents.put(key, intent.dump(), revision=revision)
        reach("executor.intent-stored")
        outcome = await self._write(action)
        if outcome.status == "Done" and not outcome.wrote and intent.has_rival(self._clock.now()):
            # Without a write of ours on the object nothing stops the one before us, which may be on its way.
            return self._outcome(action, "Failed", reason="InProgress", detail="an older action may still be written")
        if outcome.status == "Done" or until:
            rest = replace(intent, done=outcome.status == "Done", until="", older="")
            await self._intents.put(key, rest.dump(), revision=revision)
            reach("executor.done-stored")
        return outcome

    async def _write(self, action: Action) -> Outcome:
        reach("executor.before-write")
        try:
            outcome = await self._carry_out(action)
        except Exception as error:
            # A mistake of ours must not end the loop with all that is in hands; the rule's status says it, and retries.
            log.exception("could not carry out", extra={"id": action.id})
            return self._outcome(action, "Failed", reason="InternalError", detail=repr(error)[:DETAIL_MAX])
        reach("executor.after-write")
        return outcome

    def _outcome(self, action: Action, status: str, **more: object) -> Outcome:
        return Outcome.model_validate({"action": action.id, "status": status, "observed_at": self._clock.now(), **more})

    def _report(self, action: Action, outcome: Outcome) -> None:
        kind = type(action).__name__
        status = outcome.reason if outcome.reason in GOES_ON else outcome.status  # what goes on has not failed
        telemetry.actions.labels(action.rule, kind, status).inc()
        took = (outcome.observed_at - action.decided_at).total_seconds()
        telemetry.action_seconds.labels(kind).observe(max(took, 0.0))
        level = logging.INFO if status == "Done" or status in GOES_ON else logging.WARNING
        extra = {"rule": action.rule, "object": action.object, "id": action.id, "reason": outcome.reason}
        log.log(level, "%s: %s %s", status, kind, outcome.detail, extra=extra)


def _key(action: Action) -> str:
    """What is done one after the other, and fenced by generation: a lane of an object."""
    return subjects.key(action.rule, action.object, *([action.lane] if action.lane else []))


def _older(known: Intent | None, action: Action, now: datetime) -> str:
    """Until when the change of weights that was begun before this one may still be written; empty: there is none."""
    if known is None or known.done or not isinstance(action, SetWeights):
        return ""
    return known.older if known.is_of(action) else iso(now + IN_HANDS)


async def _extend(work: Work, delivery: Delivery) -> None:
    while True:
        await asyncio.sleep(EXTEND)
        try:
            await work.extend(delivery)
        except BusError as error:
            log.info("the bus does not hear that an action is being worked on: %s", error)


async def _later(work: Work, delivery: Delivery, wait: timedelta) -> None:
    try:
        await work.later(delivery, wait)
    except BusError as error:
        log.info("the queue gives the action again by itself: %s", error)
