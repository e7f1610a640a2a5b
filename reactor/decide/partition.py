"""Deciding for one partition: read its facts in order, decide, store what is owed, only then publish it.

The epoch that is taken at the start fences everything that is published: a paused or cut off owner is refused by the
server itself. Groups are kept in memory and written when they owe something, all others every second with the position,
so that what was read after the last checkpoint is read again, and folding it in again changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

from bus import subjects
from bus.errors import Malformed, Refused
from bus.message_admission import read_message
from bus.messages import Fact
from bus.port import Delivery, LogReader
from bus.topology import FACTS
from reactor.decide.checkpoint_pace import CHECKPOINT, CheckpointPace, CheckpointTurn
from reactor.decide.decision_publisher import DecisionPublisher, group_key
from reactor.decide.latest import current_facts, observations
from reactor.decide.partition_context import PartitionContext
from reactor.decide.questions import Questions
from reactor.decide.reader_state import ReaderState
from reactor.decide.refreshing import Refresher
from reactor.decide.store import OwnershipLost, PartitionStore
from reactor.decide.watermark import Watermark
from reactor.runtime import telemetry
from reactor.runtime.failpoints import reach
from reactor.runtime.quarantine import quarantine
from rules.core.reasons import Held
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.kinds.quorum.kind import judge_of
from rules.kinds.quorum.model import QuorumRule

log = logging.getLogger(__name__)

CATCH_UP = timedelta(milliseconds=5)
"""First wait before it is asked again whether all input is known while a window waits for that; doubles each time."""
CATCH_UP_MAX = timedelta(milliseconds=500)
"""Many partitions may wait for one router's work; a fact that comes is taken at once all the same."""
FRESH = timedelta(milliseconds=250)
"""Facts that were stored so lately are on time: they are decided on without asking whether there are newer ones."""
IDLE = timedelta(seconds=30)
"""Longest wait for facts or a window."""
FOREVER = timedelta(days=1)
RING_BATCH = 100
"""Groups that are decided between two pauses of the loop: some 20 ms."""
_FACTS = frozenset(get_args(Fact))


class Partition:
    """One partition while we own it."""

    def __init__(self, shared: PartitionContext, number: int) -> None:
        self._shared = shared
        self._number = number
        self._records = PartitionStore(shared.bus, number, shared.name, shared.routing.rule_set)
        self._position = 0
        self._pace = CheckpointPace(shared.clock, shared.unsaved)
        self._writing = CheckpointTurn(shared.writers)
        self.group_store = GroupStore(shared.routing, mine=lambda *_: False)  # none, until they are loaded
        self._publisher = DecisionPublisher(shared, number, self._records)
        self._refresher = Refresher(shared.bus, shared.clock)
        self._questions = Questions(lambda: self.group_store, self._refresher, shared.clock, self._wake)
        self._catching_up = False
        self._again = CATCH_UP
        self._recalled = True
        """True if we know all observations of targets that no group listened to when this partition was taken over."""
        self._inherited = True
        """True while the previous owner's owed actions are still to be published."""
        self._reader_state = ReaderState(shared.clock)
        self._now = datetime.min.replace(tzinfo=UTC)
        """The moment up to which was decided."""
        self._reading: LogReader | None = None
        self._came: Sequence[Delivery] = ()
        """Deliveries that have come and are not being decided on yet."""
        self._coming: asyncio.Task[Sequence[Delivery]] | None = None
        """The facts that are waited for; goes on from turn to turn until some come."""
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when a turn is due although no fact has come: a group was asked, or this process was suspended, and what
        it owns may be another's by now."""

    async def run(self, stop: asyncio.Event) -> None:
        """Decide until told to stop, or until the partition is another owner's.

        Raises Lost, Unavailable; StreamRecreated: what was read has to be loaded again.
        """
        try:
            fence = await self._shared.bus.acquire_epoch(subjects.owner(self._number), self._shared.name)
            self._publisher.behind(fence)
            reach("decider.epoch-taken")
            async with self._shared.loading:
                await self._load()
            reach("decider.loaded")
            async with self._shared.bus.read(FACTS, subjects.facts(self._number), after=self._position) as reading:
                self._reading = reading
                known = Watermark(self._shared.bus, self._shared.clock, reading)
                stopped = asyncio.create_task(stop.wait())
                unwatch = self._shared.clock.standstill.watch(self._wake)
                try:
                    async with self._answering():
                        while not stopped.done():
                            await self._turn(reading, known, stopped)
                finally:
                    unwatch()
                    stopped.cancel()
                    await self._leave_waiting()
            await self._checkpoint()
        except Refused as error:
            raise OwnershipLost(f"partition {self._number}: {error}") from error
        finally:
            self._reading = None
            self._writing.leave()
            self._pace.leave()

    @property
    def unread(self) -> int:
        """Number of facts that were received and are not yet decided on."""
        return len(self._came) + (self._reading.unread if self._reading is not None else 0)

    async def _next(self, reading: LogReader) -> Sequence[Delivery]:
        self._came = await reading.next(FOREVER)
        return self._came

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Answer executors, and those who need to know what the Quorum sources of this partition see now."""
        quorums = [rule.source for rule in self._shared.routing.rules.values() if isinstance(rule, QuorumRule)]
        bus = self._shared.bus
        async with AsyncExitStack() as stack:
            stack.push_async_callback(await bus.listen(subjects.wanted(self._number), self._questions.answer))
            for judge, source in ((judge_of(one.name), one.name) for one in quorums):
                if self._mine(*judge):
                    handle = partial(self._questions.refresh, judge)
                    stack.push_async_callback(await bus.listen(subjects.refresh(source), handle))
            yield

    async def _load(self) -> None:
        groups, self._position = await self._records.load()
        self.group_store = GroupStore(self._shared.routing, groups, mine=self._mine)
        self.group_store.reader = self._reader_state.reader(None)
        self.group_store.reconsider(self._shared.clock.now())
        self._recalled = not self._position
        await self._records.forget(self.group_store)  # those of rules that are no more: no fact will ever be about them
        await self._publisher.chain.load(self._records.audited)
        await self._publisher.audit_owed(self.group_store, self._shared.clock.now(), self._position)
        if self._position and self._records.other_rules:
            await self._fold_current_facts()

    async def _fold_current_facts(self) -> None:
        """Our rules have groups, or targets, that those before us did not have: for them, all stored facts are news.

        The others have had it: what is not newer changes nothing.
        """
        facts = await current_facts(self._shared.bus, self._number, self._position)
        log.info("partition %d: %d standing facts are read by other rules", self._number, len(facts))
        for start in range(0, len(facts), RING_BATCH):
            some = facts[start : start + RING_BATCH]
            now = self._as_late_as(some)
            await self._carry(self.group_store.apply(some, now, known=False), now)
            await asyncio.sleep(0)
        self._recalled = True

    def _mine(self, rule: str, scope: str) -> bool:
        return self._shared.partition_of(rule, scope) == self._number

    async def _turn(self, reading: LogReader, known: Watermark, stopped: asyncio.Task[bool]) -> None:
        """Wait for facts or for the next alarm, whichever comes first, and decide."""
        began = self._shared.clock.monotonic()
        wait = self._wait()
        coming = self._coming = self._coming or asyncio.create_task(self._next(reading))
        any_of: set[asyncio.Future[Any]] = {coming, stopped, self._woken}
        if self._writing.coming is not None:
            any_of.add(self._writing.coming)
        await asyncio.wait(any_of, timeout=wait.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        if stopped.done() and not coming.done():
            return
        deliveries: Sequence[Delivery] = ()
        if coming.done():
            self._coming, self._came, deliveries = None, (), coming.result()
        if self._woken.done():
            self._woken = asyncio.get_running_loop().create_future()
        if self._reader_state.was_stopped(began, wait):
            await self._records.still_ours()
            self._reader_state.restart()
        if deliveries:
            await self._take(deliveries)
        await self._ring(known)
        if self._inherited and not self._catching_up and await known.up_to(self._reader_state.began, self._position):
            await self._publisher.publish_owed(self.group_store, self._shared.clock.now())
            self._inherited = False
        await self._checkpoint_in_turn()

    async def _checkpoint_in_turn(self) -> None:
        if self._checkpoint_wait() > 0:
            self._writing.leave()  # what a decision stored left nothing to write
            return
        self._writing.get_in_line()
        if self._writing.is_ours:
            try:
                await self._checkpoint()
            finally:
                self._writing.leave()

    def _wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    async def _leave_waiting(self) -> None:
        """The next owner of the partition reads again what comes."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)

    def _checkpoint_wait(self) -> float:
        news, changed = self._records.unsaved(self._position, self._publisher.chain.head)
        return self._pace.wait(news=news, changed=changed)

    def _look_at_listening(self) -> None:
        reader = self._reader_state.reader(self.group_store.next_alarm())
        if reader != self.group_store.reader:
            self.group_store.reader = reader

    def _wait(self) -> timedelta:
        clock = self._shared.clock
        # Without ticks of the process only a short wait shows that it was stopped.
        longest = CHECKPOINT if self._inherited or not clock.standstill.is_watched else IDLE
        if self._writing.coming is None:
            longest = min(longest, timedelta(seconds=max(self._checkpoint_wait(), 0.001)))
        alarm = self.group_store.next_alarm()
        if alarm is None:
            return longest
        soonest = self._again if self._catching_up else timedelta(milliseconds=1)
        return min(max(alarm - clock.now(), soonest), longest)

    async def _take(self, deliveries: Sequence[Delivery]) -> None:
        facts: list[Fact] = []
        traces: list[str | None] = []
        positions: list[int] = []
        for delivery in deliveries:
            try:
                fact = read_message(delivery.subject, delivery.body).data
            except Malformed as error:
                quarantine(delivery, FACTS, error)
                continue
            if type(fact) in _FACTS:
                facts.append(fact)
                traces.append(delivery.traceparent)
                positions.append(delivery.sequence)
        for name, count in Counter(type(fact).__name__ for fact in facts).items():
            telemetry.facts.labels(name).inc(count)
        reach("decider.fact-read")
        if not self._recalled and self.group_store.gains(facts):
            self.group_store.recall(await observations(self._shared.bus, self._number, self._position))
            self._recalled = True
        last = deliveries[-1]
        self._look_at_listening()
        now = self._as_late_as(facts)
        known = self._is_prompt(last) and not self._runs_out(now)
        self._position = last.sequence
        self._pace.read(len(deliveries))
        with telemetry.decide_seconds.time():
            decisions = self.group_store.apply(facts, now, positions, known=known)
        self._publisher.traces.heard(facts, traces, (decision.group for decision in decisions))
        await self._carry(decisions, now)
        waited = self._shared.clock.now() - deliveries[0].stored_at
        telemetry.decision_seconds.observe(max(waited.total_seconds(), 0.0))

    def _is_prompt(self, delivery: Delivery) -> bool:
        """Facts that were long on their way may be half a story: the rest comes behind them."""
        return self._shared.clock.now() - delivery.stored_at <= FRESH

    def _runs_out(self, now: datetime) -> bool:
        """True if a window is over by now: facts that speak against it may not have come yet."""
        alarm = self.group_store.next_alarm()
        return alarm is not None and alarm <= now

    def _as_late_as(self, facts: Sequence[Fact]) -> datetime:
        """Advance and return the partition's time: that of the newest of these facts, at most now, never earlier than
        before.

        What ends a window may come right behind them: only `_ring`, which asks for that, lets it get later.
        """
        newest = max((fact.observed_at for fact in facts), default=self._now)
        self._now = max(self._now, min(newest, self._shared.clock.now()))
        return self._now

    async def _ring(self, known: Watermark) -> None:
        now = self._shared.clock.now()
        alarm = self.group_store.next_alarm()
        if alarm is None or alarm > now:
            self._catching_up = False
            self._reader_state.keeps_up()
            return
        self._look_at_listening()
        until = await known.up_to(alarm, self._position)
        if until is None:
            self._again = min(2 * self._again, CATCH_UP_MAX) if self._catching_up else CATCH_UP
            if not self._catching_up:
                self._catching_up = True
                telemetry.holds.labels("", Held.CATCHING_UP).inc()
                log.info("partition %d: windows wait until older facts are read", self._number)
            return
        self._catching_up = False
        self._reader_state.keeps_up()
        self._now = max(self._now, until)
        while decisions := self.group_store.fire_due(self._now, at_most=RING_BATCH):
            await self._carry(decisions, self._now)
            await asyncio.sleep(0)

    async def _carry(self, decisions: Sequence[Decision], now: datetime) -> None:
        """Store the groups that owe or say something, then publish what they owe and say, then the audit."""
        self._records.changed(group_key(decision) for decision in decisions if decision.news)
        self._records.changed((group_key(decision) for decision in decisions if not decision.news), news=False)
        await self._records.forget(self.group_store)
        self._questions.decided([group_key(decision) for decision in decisions])
        await self._refresher.ask(lack for decision in decisions for lack in decision.lacks)
        await self._publisher.publish(self.group_store, decisions, now, self._position)

    async def _checkpoint(self) -> None:
        self._pace.begin()
        await self._records.checkpoint(self.group_store, self._position, self._publisher.chain.head)
